package bitlib

// The library bit against recorded replies of Redis.

import (
	"testing"

	"github.com/limitkv/limitkv/luavm/corpus"
)

func TestAsRedis(t *testing.T) {
	corpus.Run(t, "testdata/bit.txt", map[string]corpus.Library{"bit": Open})
}
