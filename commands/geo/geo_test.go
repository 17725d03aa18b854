package geo

// Geohashes and areas, by properties that must be true. conformance/testdata/geo checks that the numbers are Redis's.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/limitkv/limitkv/zset"
)

func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func somewhere(rng *rand.Rand) (longitude, latitude float64) {
	return (rng.Float64() - 0.5) * 2 * longitudeMax, (rng.Float64() - 0.5) * 2 * latitudeMax
}

func TestGeohash(t *testing.T) {
	rng := random(t)
	for range 20000 {
		x, y := somewhere(rng)
		score := scoreOf(x, y)
		if score != math.Trunc(score) || score < 0 || score >= 1<<52 {
			t.Fatalf("%v, %v has the score %v", x, y, score)
		}
		x2, y2 := placeOf(score)
		if d := between(x, y, x2, y2, false); d.meters > 0.6 {
			t.Fatalf("%v, %v became %v, %v, %v m away", x, y, x2, y2, d.meters)
		}
		if scoreOf(x2, y2) != score {
			t.Fatalf("the middle of the cell of %v, %v is not in it", x, y)
		}
		h := mercator.encode(x, y, uint(1+rng.IntN(stepsMax)))
		a := mercator.decode(h)
		if x < a.west || x > a.east || y < a.south || y > a.north {
			t.Fatalf("%v, %v is not in its cell %+v", x, y, a)
		}
		if back := h.moved(1, -1).moved(-1, 1); back != h {
			t.Fatalf("%+v there and back again is %+v", h, back)
		}
		if from, to := h.scores(); score < from || score >= to {
			t.Fatalf("the score %v is not within %v and %v of its cell", score, from, to)
		}
	}
}

func TestDistance(t *testing.T) {
	rng := random(t)
	rough := 0
	for range 5000 {
		x1, y1 := somewhere(rng)
		x2, y2 := x1+(rng.Float64()-0.5)*math.Pow(10, -6*rng.Float64()), y1/2
		if rng.IntN(2) == 0 {
			x2, y2 = somewhere(rng)
		}
		d, e := between(x1, y1, x2, y2, false), between(x1, y1, x2, y2, true)
		if math.Abs(d.meters-e.meters) > roughness/4*e.meters {
			t.Fatalf("%v %v %v %v: roughly %v, precisely %v", x1, y1, x2, y2, d.meters, e.meters)
		}
		if !d.exact {
			rough++
		}
		if !d.rounds(1) && string(appendDistance(nil, d.meters)) != string(appendDistance(nil, e.meters)) {
			t.Fatalf("%v and %v are written differently", d.meters, e.meters)
		}
	}
	if rough < 1000 {
		t.Errorf("only %d distances were rough", rough)
	}
}

func TestAppendDistance(t *testing.T) {
	for _, c := range []struct {
		meters float64
		want   string
	}{
		{0, "0.0000"}, {0.00004, "0.0000"}, {0.00006, "0.0001"}, {0.5, "0.5000"}, {1, "1.0000"}, {166274.1516, "166274.1516"},
		{12.00005, "12.0000"}, {math.Inf(1), "-922337203685477.5808"},
	} {
		if got := string(appendDistance(nil, c.meters)); got != c.want {
			t.Errorf("%v is written %s, want %s", c.meters, got, c.want)
		}
	}
}

func TestSearchFindsAll(t *testing.T) {
	rng := random(t)
	z := &zset.Set{}
	for i := range 500 {
		x, y := somewhere(rng)
		z.Add(fmt.Appendf(nil, "m%d", i), scoreOf(x, y), 0, zset.DefaultLimits)
	}
	found := 0
	for i := range 300 {
		var q query
		q.longitude, q.latitude = somewhere(rng)
		q.latitude *= 0.7 // near the poles Redis's cells do not reach around
		q.unit, q.radius = 1000, 3000*rng.Float64()
		q.box, q.width, q.height = i%2 == 1, 6000*rng.Float64(), 6000*rng.Float64()
		got := map[string]bool{}
		for _, p := range q.find(z, func(int) {}) {
			got[string(p.member)] = true
		}
		bounds := q.bounds
		z.Ascend(0, z.Len(), func(member []byte, score float64) bool {
			x, y := placeOf(score)
			in := between(q.longitude, q.latitude, x, y, true).meters <= q.radius*1000
			if q.box {
				in = northward(y, q.latitude) <= q.height*500 && between(x, y, q.longitude, y, true).meters <= q.width*500
			}
			if bounds.west < -longitudeMax || bounds.east > longitudeMax {
				return true // nor do they over the date line
			}
			if in != got[string(member)] {
				t.Errorf("%s is %v km away of %+v", member, between(q.longitude, q.latitude, x, y, true).meters/1000, q.shape)
			}
			if in {
				found++
			}
			return true
		})
	}
	if found < 100 {
		t.Errorf("only %d members were found", found)
	}
}

// TestCircle checks whether places are in a circle whose edge is very near to them, also across the date line and the poles.
func TestCircle(t *testing.T) {
	rng := random(t)
	in := 0
	for range 50_000 {
		var s shape
		s.longitude, s.latitude = somewhere(rng)
		s.unit = 1
		x, y := s.longitude+180*rng.NormFloat64()*math.Pow(10, -4*rng.Float64()), s.latitude+rng.NormFloat64()*math.Pow(10, -4*rng.Float64())
		x, y = placeOf(scoreOf(math.Remainder(x, 2*longitudeMax), min(max(y, -latitudeMax), latitudeMax)))
		far := between(s.longitude, s.latitude, x, y, true).meters
		s.radius = far * (1 + 1e-12*(rng.Float64()-0.5))
		s.prepare()
		var p point
		if got, want := s.locate(&p, scoreOf(x, y)), far <= s.radius; got != want {
			t.Fatalf("%v, %v is %v m away of %+v: in it %v, want %v", x, y, far, s, got, want)
		} else if got {
			in++
		}
	}
	if in < 10_000 || in > 40_000 {
		t.Errorf("%d were in the circle", in)
	}
}

func BenchmarkSearch(b *testing.B) {
	rng := random(b)
	z := &zset.Set{}
	for i := range 100_000 {
		x, y := somewhere(rng)
		z.Add(fmt.Appendf(nil, "m%d", i), scoreOf(x, y), 0, zset.DefaultLimits)
	}
	var q query
	q.longitude, q.latitude, q.unit, q.radius = 10, 50, 1000, 300
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for range b.N {
		n = len(q.find(z, func(int) {}))
	}
	b.ReportMetric(float64(n), "found")
}
