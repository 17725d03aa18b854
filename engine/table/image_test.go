package table

import (
	"fmt"
	"testing"
)

// TestImageForgets adds and removes records while an image is made: the image does not remember removed ones.
func TestImageForgets(t *testing.T) {
	var tb Table
	for i := range 1000 {
		tb.Add(NewRecord(fmt.Appendf(nil, "stays:%d", i), 0, false))
	}
	image, n := tb.Image(func(Record) {}), 0
	for i := range 100_000 {
		key := fmt.Appendf(nil, "goes:%d", i)
		tb.Add(NewRecord(key, 0, false))
		n = max(n, len(image.noted))
		tb.Delete(key)
	}
	if n != 1 || len(image.noted) != 0 {
		t.Errorf("%d records are noted, %d at most", len(image.noted), n)
	}
}
