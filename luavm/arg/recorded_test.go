package arg_test

import (
	"testing"

	"github.com/limitkv/limitkv/luavm/corpus"
)

// tostring and tonumber of a corpus are FormatNumber and ParseNumber.
func TestNumbersAsRedis(t *testing.T) { corpus.Run(t, "testdata/numbers.txt", nil) }
