package service

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/limitkv/limitkv/rls/config"
)

// keyMax is the length of the longest key in full; longer ones are hashed. The values come from clients, and headers may be
// long.
const keyMax = 512

// key returns the key of a descriptor's limiter: prefix domain|key=value|…|unit. The separators are escaped in all parts, so
// no client can make a value that leads to another descriptor's limiter.
func key(prefix, domain string, d *ratelimit.RateLimitDescriptor, f config.Found) string {
	var b strings.Builder
	b.WriteString(prefix)
	escape(&b, domain)
	for i, e := range d.GetEntries() {
		b.WriteByte('|')
		escape(&b, e.GetKey())
		b.WriteByte('=')
		if f.Shared != nil && f.Shared[i] != "" {
			b.WriteByte('*') // no value begins with *, since it is escaped in values
			escape(&b, f.Shared[i])
		} else {
			escape(&b, e.GetValue())
		}
	}
	b.WriteByte('|')
	b.WriteString(strings.ToLower(f.Unit.String()))
	if b.Len() <= keyMax {
		return b.String()
	}
	sum := sha256.Sum256([]byte(b.String()))
	return b.String()[:keyMax-2*sha256.Size] + hex.EncodeToString(sum[:])
}

const special = "%|=*"

// escape writes a text with the separators as %7C and so on.
func escape(b *strings.Builder, s string) {
	for {
		i := strings.IndexAny(s, special)
		if i < 0 {
			b.WriteString(s)
			return
		}
		b.WriteString(s[:i])
		const digits = "0123456789ABCDEF"
		b.Write([]byte{'%', digits[s[i]>>4], digits[s[i]&15]})
		s = s[i+1:]
	}
}
