package engine

import "testing"

// BenchmarkTx measures what it costs to make a change a transaction of one command: without a transaction, without a
// reader of the journal, and with a reader that discards it.
func BenchmarkTx(b *testing.B) {
	args := [][]byte{[]byte("SET"), []byte("key:000000000042"), []byte("value-value-value-value-value-va")}
	for _, name := range []string{"untold", "unread", "read"} {
		b.Run(name, func(b *testing.B) {
			ks := New(NewClock(), 1)
			if name == "read" {
				ks.Journal.Attach(discard{})
			}
			var set LockSet
			set.AddKey(args[1])
			v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
			ks.Lock(set)
			v.Hint(args[1])
			defer ks.Unlock(set)
			b.ReportAllocs()
			for b.Loop() {
				v.Modified(args[1])
				if name != "untold" {
					v.EndCommand(args)
					v.Commit()
				}
				v.TakeChanges()
			}
		})
	}
}
