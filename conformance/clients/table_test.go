package main

// The lines of programs and the table.

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	checks, bad := parse("Go", "pass\tx\t1.2\tconnect\tone\npass\tx\t1.2\tconnect\ttwo\nfail\tx\t1.2\ttls\tthree\tit broke\n\nnoise\npass\ty\t2\tnowhere\tz\npass\ty\t2\tscript\tz\npass\tA\t1\tscript\tz\n")
	if len(checks) != 5 || len(bad) != 2 || checks[2].passed || checks[2].reason != "it broke" {
		t.Fatalf("%+v %q", checks, bad)
	}
	got := table(checks)
	if strings.Index(got, "| Go | A 1 |") > strings.Index(got, "| Go | x 1.2 |") {
		t.Errorf("not in order:\n%s", got)
	}
	for _, want := range []string{"| Go | x 1.2 | 2 | | | | | | | | | | | |\n", "| Go | y 2 | | | | | | | | 1 | | | | |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	text, err := replaced("a\n"+begin+"old\n"+end+"z\n", "new\n")
	if err != nil || text != "a\n"+begin+"\nnew\n\n"+end+"z\n" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := replaced("a", "b"); err == nil {
		t.Error("a text without marks was taken")
	}
}
