package hyperloglog

// PFDEBUG and PFSELFTEST.

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hyperloglog"
	"github.com/limitkv/limitkv/server/command"
)

var pfdebugRow = &command.Command{
	Name: "pfdebug", Arity: 3, Group: command.GroupHyperLogLog, Since: "2.8.9",
	Flags:      command.Write | command.DenyOOM | command.Admin | command.System,
	ACL:        hyperLogLogACL,
	Keys:       []command.KeySpec{command.Key(2, command.RW|command.Access)},
	Summary:    "Shows the inside of a HyperLogLog.",
	Complexity: "O(1), with a large constant",
	Syntax:     "subcommand:string key",
	Run:        pfdebug,
}

func pfdebug(c *command.Ctx) {
	what, key := c.Args[1], c.Args[2]
	if command.EqualFold(what, "SIMD") {
		simd(c)
		return
	}
	e := c.GetWrite(key)
	if !e.Ok() {
		c.Error("ERR The specified key does not exist")
		return
	}
	b, ok := counter(c, e)
	if !ok {
		return
	}
	b = c.EditString(key, 0, len(b))
	sparse := hyperloglog.Encoding(b) == "sparse"
	switch {
	case command.EqualFold(what, "ENCODING"):
		c.Status(hyperloglog.Encoding(b))
	case command.EqualFold(what, "DECODE") && sparse:
		c.BulkString(hyperloglog.Decode(b))
	case command.EqualFold(what, "DECODE"):
		c.Error("ERR HLL encoding is not sparse")
	case command.EqualFold(what, "TODENSE"):
		if toDense(c, key, b, sparse) && sparse {
			c.Int(1)
		} else if !sparse {
			c.Int(0)
		}
	case command.EqualFold(what, "GETREG"):
		if !toDense(c, key, b, sparse) {
			return
		}
		var registers hyperloglog.Registers
		_ = registers.Merge(c.Peek(key).Bytes(nil)) // it is dense, so it cannot fail
		c.Array(len(registers))
		for _, r := range registers {
			c.Int(int64(r))
		}
	default:
		c.Error(fmt.Sprintf("ERR Unknown PFDEBUG subcommand '%s'", what))
	}
}

// toDense makes a sparse counter dense, and announces no change. It replies the error and reports false if the counter is
// corrupt.
func toDense(c *command.Ctx, key, b []byte, sparse bool) bool {
	if !sparse {
		return true
	}
	b, err := hyperloglog.ToDense(b)
	if err != nil {
		c.Error(errCorrupt)
		return false
	}
	put(c, key, b)
	c.ForceEffect()
	return true
}

// simd answers the commands that turn Redis's vector instructions on and off. limitkv has none.
func simd(c *command.Ctx) {
	switch {
	case command.EqualFold(c.Args[2], "ON"):
		c.Status("enabled")
	case command.EqualFold(c.Args[2], "OFF"):
		c.Status("disabled")
	default:
		c.Error("ERR Argument must be ON or OFF")
	}
}

var pfselftestRow = &command.Command{
	Name: "pfselftest", Arity: 1, Group: command.GroupHyperLogLog, Since: "2.8.9",
	Flags:      command.Admin | command.System,
	ACL:        hyperLogLogACL,
	Summary:    "Tests counting: adds ten million elements.",
	Complexity: "O(1), some seconds",
	// It takes no key, and takes long.
	Plan: func(*command.Ctx, *engine.LockSet) (long bool) { return true },
	Run:  func(c *command.Ctx) { selfTest(c, selfTestElements) },
}

const (
	selfTestElements = 10_000_000
	// selfTestDeviations is how many standard errors an estimate may be wrong.
	selfTestDeviations = 6
)

// selfTest counts elements in a dense and in a sparse counter side by side and
// compares them with each other and with the truth at each power of ten.
func selfTest(c *command.Ctx, elements int) {
	dense, _ := hyperloglog.ToDense(hyperloglog.New())
	sparse := hyperloglog.New()
	seed := c.Random()
	standardError := 1.04 / math.Sqrt(float64(len(hyperloglog.Registers{})))
	checkpoint := 1
	var element [8]byte
	for i := 1; i <= elements; i++ {
		binary.LittleEndian.PutUint64(element[:], uint64(i)^seed)
		dense, _, _ = hyperloglog.Add(dense, element[:], 0)
		sparse, _, _ = hyperloglog.Add(sparse, element[:], hyperloglog.DefaultSparseMax)
		if i != checkpoint {
			continue
		}
		if i < hyperloglog.DefaultSparseMax/2 && hyperloglog.Encoding(sparse) != "sparse" {
			c.Error("ERR TESTFAILED sparse encoding not used")
			return
		}
		n, err1 := hyperloglog.Count(dense)
		m, err2 := hyperloglog.Count(sparse)
		if n != m || err1 != nil || err2 != nil {
			c.Error("ERR TESTFAILED dense/sparse disagree")
			return
		}
		wrong := math.Abs(float64(i) - float64(n))
		most := math.Ceil(standardError * selfTestDeviations * float64(i))
		if i == 10 {
			most = 1 // two of ten in one register are not rare enough
		}
		if wrong > most {
			c.Error(fmt.Sprintf("ERR TESTFAILED Too big error. card:%d abserr:%.0f", i, wrong))
			return
		}
		checkpoint *= 10
	}
	c.OK()
}
