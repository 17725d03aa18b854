package geo

// Areas to search, circles and boxes, and distances.
//
// The last digits of the distances that clients see come from the C library's sine and cosine. Package precise has the same
// functions, at half a microsecond each. Go's are faster, but their last digit is sometimes wrong. So places are measured
// roughly first, and precisely only where a last digit could matter: near the edge of the area, between two results at nearly
// the same distance, near where the fourth decimal rounds, and for stored distances.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/luavm/precise"
)

const (
	earthRadius = 6372797.560856 // meters; Redis's mean of WGS-84
	// mercatorMax is half the equator in meters, on the map.
	mercatorMax = 20037726.37
	// roughness is an upper bound of the relative error of a rough distance.
	roughness = 1e-13
	// edgeMargin is how much farther than a circle's edge, relatively, a place surely is outside.
	edgeMargin = 1e-9
)

// radian is a degree in radians, as a division of doubles gives it.
var radian = float64(math.Pi) / 180

func radians(degrees float64) float64 { return degrees * radian }
func degrees(radians float64) float64 { return radians / radian }

// distance is how far a place is, in meters.
type distance struct {
	meters float64
	exact  bool
}

// same reports whether a rough distance may equal a number of meters.
func (d distance) same(meters float64) bool {
	return !d.exact && math.Abs(d.meters-meters) <= roughness*(d.meters+meters)
}

// between measures the distance of two places by the haversine formula.
func between(longitude1, latitude1, longitude2, latitude2 float64, exact bool) distance {
	x1, x2 := radians(longitude1), radians(longitude2)
	sin, cos, asin := math.Sin, math.Cos, math.Asin
	if exact {
		sin, cos, asin = precise.Sin, precise.Cos, precise.Asin
	}
	v := sin((x2 - x1) / 2)
	if v == 0 {
		return distance{northward(latitude1, latitude2), true}
	}
	y1, y2 := radians(latitude1), radians(latitude2)
	u := sin((y2 - y1) / 2)
	a := float64(u*u) + float64(float64(float64(cos(y1)*cos(y2))*v)*v)
	if a > 0.9 && !exact { // on the other side of the earth the error is no longer small
		return between(longitude1, latitude1, longitude2, latitude2, true)
	}
	return distance{2 * earthRadius * asin(math.Sqrt(a)), exact}
}

// northward is the distance along a meridian.
func northward(latitude1, latitude2 float64) float64 {
	return earthRadius * math.Abs(radians(latitude2)-radians(latitude1))
}

// appendDistance appends a distance with four decimals, in meters over unit.
func appendDistance(dst []byte, meters float64) []byte {
	const decimals, scale = 4, 10000
	n := int64(math.MinInt64) // as C converts a number that does not fit
	if scaled := math.RoundToEven(meters * scale); scaled < 1<<63 {
		n = int64(scaled)
	}
	if n < 0 {
		dst = append(dst, '-')
	}
	value := uint64(max(n, -n))
	dst = strconv.AppendUint(dst, value/scale, 10)
	dst = append(dst, '.')
	var digits [decimals + 1]byte
	return append(dst, strconv.AppendUint(digits[:0], scale+value%scale, 10)[1:]...)
}

// rounds reports whether a rough distance is so near to where the fourth decimal rounds that the exact one is needed.
func (d distance) rounds(unit float64) bool {
	scaled := d.meters / unit * 10000
	_, fraction := math.Modf(scaled)
	return !d.exact && math.Abs(fraction-0.5) <= 2*roughness*scaled
}

// shape is an area around a place. Its sizes are in multiples of unit, which is in meters.
type shape struct {
	longitude, latitude float64
	unit                float64
	box                 bool
	radius              float64
	width, height       float64
	middle              middle
	bounds              area
}

// middle is what all distances from the middle of a shape need: its place in radians, its sine and cosine, and the haversine
// of a circle's edge, beyond which nothing is measured. wide is how many degrees a circle reaches to the east and the west at
// most.
type middle struct{ x, y, sin, cos, edge, wide float64 }

// prepare computes the middle and the bounds.
func (s *shape) prepare() {
	s.middle = middle{x: radians(s.longitude), y: radians(s.latitude), edge: math.Inf(1), wide: math.Inf(1)}
	s.bounds = s.around()
	if east := s.bounds.east - s.longitude; east > 0 && !s.box { // it is not if the circle contains a pole
		s.middle.wide = east * (1 + edgeMargin)
	}
	s.middle.sin, s.middle.cos = math.Sincos(s.middle.y)
	if half := s.radius * s.unit / (2 * earthRadius); half < 1 && !s.box {
		sin := math.Sin(half)
		s.middle.edge = sin * sin * (1 + edgeMargin)
	}
}

// point is a member that was found.
type point struct {
	longitude, latitude float64
	distance            distance
	score               float64
	member              []byte
}

// locate makes p the place of a score, and reports whether it is in the shape.
func (s *shape) locate(p *point, score float64) bool {
	p.score = score
	p.longitude, p.latitude = placeOf(score)
	most := s.radius * s.unit
	if s.box {
		most = s.height * s.unit / 2
	}
	if north := northward(p.latitude, s.latitude); s.box && north > most || north > most*(1+edgeMargin) {
		return false // it is farther than that: no sine is needed
	}
	if apart := math.Abs(p.longitude - s.longitude); apart > s.middle.wide && 360-apart > s.middle.wide {
		return false
	}
	// As in between, but the values of the middle are computed once.
	v := sine((radians(p.longitude) - s.middle.x) / 2)
	u := sine((radians(p.latitude) - s.middle.y) / 2)
	cos := s.middle.cos*(1-2*u*u) - s.middle.sin*2*u*math.Sqrt(1-u*u) // of the latitude
	if s.box && !s.spans(p, cos*math.Abs(v)) {
		return false
	}
	a := u*u + s.middle.cos*cos*v*v
	switch {
	case v == 0 || a > 0.9:
		p.distance = between(s.longitude, s.latitude, p.longitude, p.latitude, false)
	case a > s.middle.edge:
		return false
	default:
		p.distance = distance{2 * earthRadius * arcsine(math.Sqrt(a)), false}
	}
	if s.box {
		return true
	}
	if p.distance.same(most) {
		s.measure(p)
	}
	return p.distance.meters <= most
}

// spans reports whether a box is wide enough to reach a point, measured along the point's parallel. sine is roughly the sine
// of half the angle.
func (s *shape) spans(p *point, sine float64) bool {
	half := s.width * s.unit / 2
	across := distance{2 * earthRadius * arcsine(sine), false}
	if sine*sine > 0.9 || across.same(half) {
		across = between(p.longitude, p.latitude, s.longitude, p.latitude, true)
	}
	return across.meters <= half
}

// near is the angle, 190 km, up to which sine and arcsine use a few terms of their series: the next terms are below a
// double's last digit. They get half of the angle between two places.
const near = 0.03

// sine is rough, and fast for small angles.
func sine(x float64) float64 {
	if math.Abs(x) > near {
		return math.Sin(x)
	}
	z := x * x
	return x * (1 - z*(1./6-z*(1./120-z*(1./5040-z*(1./362880)))))
}

// arcsine is rough, and fast for small numbers.
func arcsine(x float64) float64 {
	if math.Abs(x) > near {
		return math.Asin(x)
	}
	z := x * x
	return x * (1 + z*(1./6+z*(3./40+z*(15./336+z*(105./3456+z*(945./42240))))))
}

// measure makes the distance of a point exact.
func (s *shape) measure(p *point) {
	if !p.distance.exact {
		p.distance = between(s.longitude, s.latitude, p.longitude, p.latitude, true)
	}
}

// compare orders points by their distance.
func (s *shape) compare(a, b *point) int {
	switch apart := a.distance.meters - b.distance.meters; {
	case math.Abs(apart) <= roughness*(a.distance.meters+b.distance.meters):
	case apart > 0:
		return 1
	default:
		return -1
	}
	if a.longitude == b.longitude && a.latitude == b.latitude {
		return 0
	}
	if a.distance.same(b.distance.meters) || b.distance.same(a.distance.meters) {
		s.measure(a)
		s.measure(b)
	}
	switch {
	case a.distance.meters > b.distance.meters:
		return 1
	case a.distance.meters < b.distance.meters:
		return -1
	}
	return 0
}

// around is a rectangle that contains the shape. Its sides to the east and west are as far away as the shape is widest in
// degrees, towards the pole.
func (s *shape) around() area {
	height, width := s.unit*s.radius, s.unit*s.radius
	if s.box {
		height, width = s.unit*(s.height/2), s.unit*(s.width/2)
	}
	dy := degrees(height / earthRadius)
	edge := s.latitude + dy
	if s.latitude < 0 {
		edge = s.latitude - dy
	}
	dx := degrees(width / earthRadius / precise.Cos(radians(edge)))
	return area{west: s.longitude - dx, east: s.longitude + dx, south: s.latitude - dy, north: s.latitude + dy}
}

// steps returns the size of cells of which nine cover a circle.
func steps(meters, latitude float64) uint {
	if meters == 0 {
		return stepsMax
	}
	n := 1
	for ; meters < mercatorMax; n++ {
		meters *= 2
	}
	n -= 2 // so that the nine contain the circle wherever its middle is in the middle cell
	// Degrees are shorter near the poles.
	switch y := math.Abs(latitude); {
	case y > 80:
		n -= 2
	case y > 66:
		n--
	}
	return uint(min(max(n, 1), stepsMax))
}

// cells returns the cells that can have members of the shape: the one that contains its middle, then the ones around it. Some
// may be none, and some the same.
func (s *shape) cells() [9]cell {
	meters := s.radius
	if s.box {
		w, h := s.width/2, s.height/2
		meters = math.Sqrt(float64(w*w) + float64(h*h))
	}
	n := steps(meters*s.unit, s.latitude)
	h := mercator.encode(s.longitude, s.latitude, n)
	if n > 1 && !covered(h, s.bounds) {
		n--
		h = mercator.encode(s.longitude, s.latitude, n)
	}
	// Cells that are beyond the bounds are left out.
	a := mercator.decode(h)
	few := n >= 2
	noSouth, noNorth := few && a.south < s.bounds.south, few && a.north > s.bounds.north
	noWest, noEast := few && a.west < s.bounds.west, few && a.east > s.bounds.east
	cells := [9]cell{h}
	for i, d := range [...]struct{ dx, dy int }{{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}} {
		if d.dy > 0 && noNorth || d.dy < 0 && noSouth || d.dx > 0 && noEast || d.dx < 0 && noWest {
			continue
		}
		cells[i+1] = h.moved(d.dx, d.dy)
	}
	return cells
}

// covered tells whether the cells around h reach as far as the bounds.
func covered(h cell, bounds area) bool {
	return mercator.decode(h.moved(0, 1)).north >= bounds.north &&
		mercator.decode(h.moved(0, -1)).south <= bounds.south &&
		mercator.decode(h.moved(1, 0)).east >= bounds.east &&
		mercator.decode(h.moved(-1, 0)).west <= bounds.west
}
