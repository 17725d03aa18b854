package geo

// Geohashes: a place as an integer, whose bits alternately halve the world, east from west and north from south. Places that
// are near each other mostly have nearby integers, so an area is a few ranges of scores. Members have 52 bits, as many as a
// score holds exactly.
//
// Integers and places are converted exactly as in Redis, to the bit, so the order of the floating-point operations matters
// here.

import "math"

// stepsMax is how often both coordinates are halved for a member's score.
const stepsMax = 26

// The limits of the world in Web Mercator, which does not contain the poles.
const (
	longitudeMax = 180.0
	latitudeMax  = 85.05112878
)

// world is the range that coordinates are measured in.
type world struct{ longitude, latitude float64 }

var (
	mercator = world{longitudeMax, latitudeMax}
	// whole is the world of common geohashes, which GEOHASH returns.
	whole = world{180, 90}
)

// cell is a geohash: an area of the world, 2*steps bits.
type cell struct {
	bits  uint64
	steps uint
}

// none reports whether h is no cell.
func (h cell) none() bool { return h == cell{} }

// encode is the cell that a place lies in.
func (w world) encode(longitude, latitude float64, steps uint) cell {
	y := (latitude + w.latitude) / (2 * w.latitude)
	x := (longitude + w.longitude) / (2 * w.longitude)
	scale := float64(uint64(1) << steps)
	return cell{spread(uint32(y*scale)) | spread(uint32(x*scale))<<1, steps}
}

// area is a rectangle of the world.
type area struct{ west, east, south, north float64 }

// decode is the area of a cell.
func (w world) decode(h cell) area {
	y, x := gather(h.bits), gather(h.bits>>1)
	scale := 1 / float64(uint64(1)<<h.steps) // a power of two: to multiply by it is as exact as to divide
	at := func(n uint32, most float64) float64 { return -most + float64(float64(n)*scale*(2*most)) }
	return area{
		west: at(x, w.longitude), east: at(x+1, w.longitude),
		south: at(y, w.latitude), north: at(y+1, w.latitude),
	}
}

// scoreOf is the score of a member at a place.
func scoreOf(longitude, latitude float64) float64 {
	return float64(mercator.encode(longitude, latitude, stepsMax).bits)
}

// placeOf is the place of a score: the middle of its cell.
func placeOf(score float64) (longitude, latitude float64) {
	a := mercator.decode(cell{truncated(score), stepsMax})
	longitude, latitude = (a.west+a.east)/2, (a.south+a.north)/2
	if math.Abs(longitude) > longitudeMax {
		longitude = math.Copysign(longitudeMax, longitude)
	}
	if math.Abs(latitude) > latitudeMax {
		latitude = math.Copysign(latitudeMax, latitude)
	}
	return longitude, latitude
}

// truncated converts a score to bits as C does on amd64, whatever the score.
func truncated(f float64) uint64 {
	const half = 1 << 63
	switch {
	case f >= 2*half || f != f:
		return 0
	case f >= half:
		return uint64(int64(f-half)) ^ half
	case f <= -half:
		return half
	}
	return uint64(int64(f))
}

// spread puts the bits of n on the even places.
func spread(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000FFFF0000FFFF
	x = (x | x<<8) & 0x00FF00FF00FF00FF
	x = (x | x<<4) & 0x0F0F0F0F0F0F0F0F
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

// gather is the reverse: it takes the bits on the even places.
func gather(x uint64) uint32 {
	x &= 0x5555555555555555
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0F0F0F0F0F0F0F0F
	x = (x | x>>4) & 0x00FF00FF00FF00FF
	x = (x | x>>8) & 0x0000FFFF0000FFFF
	return uint32(x | x>>16)
}

// moved is the cell next to h: dx to the east, dy to the north, each -1, 0 or 1. It wraps around the edge of the world.
func (h cell) moved(dx, dy int) cell {
	const even, odd = 0x5555555555555555, 0xaaaaaaaaaaaaaaaa
	within := uint64(math.MaxUint64) >> (64 - 2*h.steps)
	// The bits of x and y alternate: a carry of one passes over the bits of the other.
	step := func(own, other uint64, d int) uint64 {
		n := h.bits & own
		if d > 0 {
			n += other&within + 1
		} else {
			n = (n | other&within) - (other&within + 1)
		}
		return h.bits&other | n&own&within
	}
	if dx != 0 {
		h.bits = step(odd, even, dx)
	}
	if dy != 0 {
		h.bits = step(even, odd, dy)
	}
	return h
}

// scores is the range of scores of the members in the cell, the upper end
// excluded.
func (h cell) scores() (from, to float64) {
	shift := 2*stepsMax - 2*h.steps
	return float64(h.bits << shift), float64((h.bits + 1) << shift)
}

// alphabet has the digits of a geohash as text, five bits each.
const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

// geohash is a score as a common geohash, a text of 11 letters. No bits are left for the last letter.
func geohash(score float64) string {
	longitude, latitude := placeOf(score)
	h := whole.encode(longitude, latitude, stepsMax)
	var text [11]byte
	for i := range text {
		digit := uint64(0)
		if i < 10 {
			digit = h.bits >> (2*stepsMax - 5*(i+1)) & 31
		}
		text[i] = alphabet[digit]
	}
	return string(text[:])
}
