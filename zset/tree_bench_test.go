package zset

import (
	"bytes"
	"math/rand"
	"runtime"
	"sort"
	"testing"

	"github.com/tidwall/btree"
)

// BenchmarkTree compares order with tidwall/btree for the same work on the same million entries: this is why order
// exists. btree counts the items below a node and uses that to find the entry of a rank, but not the rank of an entry,
// and its nodes are not visible. So only a search with GetAt remains.
func BenchmarkTree(b *testing.B) {
	type item struct {
		score float64
		ref   ref
	}
	a := &million().set.big.arena
	var items []item
	million().set.big.order.root.ascend(0, million().set.Len(), func(scores []float64, refs []ref) bool {
		for i, r := range refs {
			items = append(items, item{scores[i], r})
		}
		return true
	})
	rnd := rand.New(rand.NewSource(1))
	rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	run := func(name string, op func(it *item)) {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				op(&items[rnd.Intn(len(items))])
			}
		})
	}

	before := heap()
	tree := btree.NewBTreeGOptions(func(x, y item) bool {
		if x.score != y.score {
			return x.score < y.score
		}
		return x.ref != y.ref && bytes.Compare(a.member(x.ref), a.member(y.ref)) < 0
	}, btree.Options{NoLocks: true})
	for _, it := range items {
		tree.Set(it)
	}
	bytesTidwall := heap() - before
	run("rank/tidwall", func(it *item) {
		sort.Search(tree.Len(), func(i int) bool {
			x, _ := tree.GetAt(i)
			return !tree.Less(x, *it)
		})
	})
	run("byRank/tidwall", func(*item) { tree.GetAt(rnd.Intn(len(items))) })
	run("move/tidwall", func(it *item) {
		tree.Delete(*it)
		it.score = float64(rnd.Intn(1_000_000_000))
		tree.Set(*it)
	})
	tree.Clear()

	before = heap()
	o := newOrder(a)
	for _, it := range items {
		o.insert(it.score, it.ref)
	}
	bytesOrder := heap() - before
	run("rank/order", func(it *item) { o.rank(it.score, it.ref) })
	run("byRank/order", func(*item) {
		r := rnd.Intn(len(items))
		o.root.ascend(r, r+1, func([]float64, []ref) bool { return true })
	})
	run("move/order", func(it *item) {
		score := float64(rnd.Intn(1_000_000_000))
		o.move(it.score, score, it.ref)
		it.score = score
	})
	b.ReportMetric(bytesTidwall/float64(len(items)), "tidwall-B/entry")
	b.ReportMetric(bytesOrder/float64(len(items)), "order-B/entry")
}
