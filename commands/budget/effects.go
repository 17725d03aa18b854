package budget

// The effects of limiters, which journals store as RL.APPLY and RL.GRANTS: what a limiter became. With named grants
// an image would contain all of them, so an effect contains the limiter's state and only the grants that changed.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/limiter"
)

// The words of RL.GRANTS.
const (
	WordState = "STATE" // state given [id grant]...: an empty grant has ended
	WordEnded = "ENDED" // n: how many grants expired
	WordTaken = "TAKEN" // cost times [id grant]...: taken from a limiter whose state is long
)

// Became makes the new state of a limiter without grants the running command's effect.
func Became(v *engine.View, e engine.Entry) {
	v.NoEffect() // only the effect that follows
	if !v.Logging() {
		return
	}
	w := v.Words(4)
	w.Text("RL.APPLY")
	w.Bytes(e.Key())
	w.Int(e.Deadline())
	var buf [128]byte
	w.Bytes(limiter.AppendWide(buf[:0], e.Bytes(nil)))
	w.End()
}

// Effect logs what the running command made of a limiter. n are the limiter's grants, nil to log the limiter as a
// whole; ids are the grants that changed.
func Effect(v *engine.View, key []byte, n *limiter.Named, ids ...[]byte) {
	if n == nil || n.Len() == 0 {
		Became(v, v.Find(key))
		return
	}
	v.NoEffect() // only the effect that follows
	if !v.Logging() {
		return
	}
	w := begin(v, key, WordState, ids)
	var buf [128]byte
	w.Bytes(limiter.AppendWide(buf[:0], n.State()))
	w.Bytes(n.AppendGiven(buf[:0]))
	end(w, n, ids)
}

// Taken logs that a cost was taken a number of times from a limiter that was Long before. n and ids are as for
// Effect.
func Taken(v *engine.View, key []byte, cost, times int64, n *limiter.Named, ids ...[]byte) {
	v.NoEffect() // only the effect that follows
	if !v.Logging() {
		return
	}
	w := begin(v, key, WordTaken, ids)
	w.Int(cost)
	w.Int(times)
	end(w, n, ids)
}

// begin begins an effect that has two more words before the grants.
func begin(v *engine.View, key []byte, word string, ids [][]byte) engine.Words {
	words := 6
	for _, id := range ids {
		if id != nil {
			words += 2
		}
	}
	w := v.Words(words)
	w.Text("RL.GRANTS")
	w.Bytes(key)
	w.Int(v.Now)
	w.Text(word)
	return w
}

// end appends the state of the grants ids, and ends the effect.
func end(w engine.Words, n *limiter.Named, ids [][]byte) {
	var buf [32]byte
	for _, id := range ids {
		if id != nil {
			w.Bytes(id)
			w.Bytes(n.AppendGrant(buf[:0], id))
		}
	}
	w.End()
}

// NamedOf is a limiter's named grants, nil if none is open.
func NamedOf(e engine.Entry) *limiter.Named {
	n, _ := e.Object().(*limiter.Named)
	return n
}
