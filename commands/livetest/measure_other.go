//go:build !unix

package livetest

import (
	"math"
	"time"
)

// CPU is not known here.
func CPU() time.Duration { return 0 }

func filesMax() int { return math.MaxInt32 }
