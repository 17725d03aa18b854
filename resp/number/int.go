package number

// ParseInt reads a signed 64-bit integer by Redis's strict rules: the whole of b,
// no blanks, no plus sign, no leading zeros, no "-0".
func ParseInt(b []byte) (v int64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	neg := b[0] == '-'
	i := 0
	if neg {
		i = 1
	}
	if i == len(b) || b[i]-'1' > 8 {
		return 0, false
	}
	var u uint64
	if len(b)-i <= 18 { // cannot overflow
		for ; i < len(b); i++ {
			d := b[i] - '0'
			if d > 9 {
				return 0, false
			}
			u = u*10 + uint64(d)
		}
	} else {
		for ; i < len(b); i++ {
			d := b[i] - '0'
			if d > 9 || u > (1<<63)/10 {
				return 0, false
			}
			u = u*10 + uint64(d)
		}
		if u > 1<<63 || u == 1<<63 && !neg {
			return 0, false
		}
	}
	if neg {
		return -int64(u), true
	}
	return int64(u), true
}

// ParseUint reads an unsigned 64-bit integer as Redis reads cursors and stream
// IDs: strictly, or else as C's strtoull does, with blanks and a sign in front
// and leading zeros.
func ParseUint(b []byte) (v uint64, ok bool) {
	if n, ok := ParseInt(b); ok {
		return uint64(n), n >= 0
	}
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] >= '\t' && b[i] <= '\r') {
		i++
	}
	neg := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		neg = b[i] == '-'
		i++
	}
	if i == len(b) {
		return 0, false
	}
	for ; i < len(b); i++ {
		d := uint64(b[i] - '0')
		if d > 9 || v > (1<<64-1)/10 || v*10 > 1<<64-1-d {
			return 0, false
		}
		v = v*10 + d
	}
	if neg {
		v = -v
	}
	return v, true
}
