package main

// Requests. A pattern is a command whose bytes are made once. For a request they are copied, and the numbers in them are
// overwritten.

import (
	"fmt"
	"strings"
)

// pattern is a command with holes for numbers of fixed width.
type pattern struct {
	text  []byte
	holes []hole
}

type hole struct{ at, width int }

// command makes a pattern of a command's arguments. A run of '#' in an argument is a hole of that many digits. Holes are
// filled in order.
func command(args ...string) *pattern {
	p := &pattern{text: fmt.Appendf(nil, "*%d\r\n", len(args))}
	for _, arg := range args {
		p.text = fmt.Appendf(p.text, "$%d\r\n", len(arg))
		for i := 0; i < len(arg); i++ {
			if arg[i] != '#' {
				continue
			}
			end := i
			for end < len(arg) && arg[end] == '#' {
				end++
			}
			p.holes = append(p.holes, hole{len(p.text) + i, end - i})
			i = end
		}
		p.text = append(p.text, strings.ReplaceAll(arg, "#", "0")+"\r\n"...)
	}
	return p
}

// append appends the command to b, with numbers in its holes.
func (p *pattern) append(b []byte, numbers ...uint64) []byte {
	start := len(b)
	b = append(b, p.text...)
	for i, h := range p.holes {
		digits(b[start+h.at:start+h.at+h.width], numbers[i])
	}
	return b
}

const pairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

// digits writes n right-aligned into b, with leading zeros.
func digits(b []byte, n uint64) {
	i := len(b)
	for i >= 2 && n > 0 {
		r := n % 100 * 2
		n /= 100
		b[i-1], b[i-2] = pairs[r+1], pairs[r]
		i -= 2
	}
	if i == 1 && n > 0 {
		b[0] = byte('0' + n%10)
	}
}

// random is a generator of random numbers (SplitMix64). Its state is one word, and each connection has its own.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a random number below n.
func (r *random) below(n uint64) uint64 {
	return (r.next() >> 32) * n >> 32
}
