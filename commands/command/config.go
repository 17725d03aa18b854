package command

// Configuration parameters: redis.conf's words, CONFIG GET and SET, flags.
// Each parameter is declared once, by whoever uses it, and kept where it is
// read without a lock.

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Config is the set of parameters.
type Config struct {
	mu     sync.Mutex
	params map[string]*Param

	maxBulk *atomic.Int64
	zset    *ZSetLimits
}

// Param is one parameter.
type Param struct {
	Name string
	// Alias is another name for it, empty if none.
	Alias string
	// Immutable parameters are set at start only.
	Immutable bool
	Get       func() string
	// Set checks and takes a value; its error is shown to the client.
	Set func(value string) error
	// Flag help; empty hides it from --help.
	Help string
}

// NewConfig makes an empty set.
func NewConfig() *Config { return &Config{params: make(map[string]*Param)} }

// Add declares a parameter.
func (c *Config) Add(p *Param) {
	c.params[p.Name] = p
	if p.Alias != "" {
		a := *p
		a.Name = p.Alias
		c.params[p.Alias] = &a
	}
}

// Alias gives a parameter another name.
func (c *Config) Alias(name, alias string) {
	p := *c.params[name]
	p.Name = alias
	c.Add(&p)
}

// MaxBulk is proto-max-bulk-len: the most bytes of an argument, and of a
// string that commands make. Several families ask for it; it is declared once.
func (c *Config) MaxBulk() *atomic.Int64 {
	if c.maxBulk == nil {
		c.maxBulk = c.Memory("proto-max-bulk-len", 512<<20, 1<<20, 1<<63-1, "the most bytes of an argument or a string")
	}
	return c.maxBulk
}

// Find looks a parameter up, in any case.
func (c *Config) Find(name string) *Param { return c.params[strings.ToLower(name)] }

// All lists the parameters in order of name.
func (c *Config) All() []*Param {
	list := make([]*Param, 0, len(c.params))
	for _, p := range c.params {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// Lock serialises CONFIG SET.
func (c *Config) Lock() { c.mu.Lock() }

// Unlock ends Lock.
func (c *Config) Unlock() { c.mu.Unlock() }

// Int declares an integer parameter from lo to hi.
func (c *Config) Int(name string, value, lo, hi int64, help string) *atomic.Int64 {
	v := new(atomic.Int64)
	v.Store(value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return strconv.FormatInt(v.Load(), 10) },
		Set: func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return fmt.Errorf("argument couldn't be parsed into an integer")
			}
			if n < lo || n > hi {
				return fmt.Errorf("argument must be between %d and %d inclusive", lo, hi)
			}
			v.Store(n)
			return nil
		}})
	return v
}

// Memory declares a parameter in bytes, which may be given with a unit.
func (c *Config) Memory(name string, value, lo, hi int64, help string) *atomic.Int64 {
	v := new(atomic.Int64)
	v.Store(value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return strconv.FormatInt(v.Load(), 10) },
		Set: func(s string) error {
			n, err := ParseMemory(s)
			if err != nil {
				return fmt.Errorf("argument must be a memory value")
			}
			if n < lo || n > hi {
				return fmt.Errorf("argument must be between %d and %d inclusive", lo, hi)
			}
			v.Store(n)
			return nil
		}})
	return v
}

// Bool declares a yes/no parameter.
func (c *Config) Bool(name string, value bool, help string) *atomic.Bool {
	v := new(atomic.Bool)
	v.Store(value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string {
			if v.Load() {
				return "yes"
			}
			return "no"
		},
		Set: func(s string) error {
			switch strings.ToLower(s) {
			case "yes":
				v.Store(true)
			case "no":
				v.Store(false)
			default:
				return fmt.Errorf("argument must be 'yes' or 'no'")
			}
			return nil
		}})
	return v
}

// Text declares a parameter that is any text.
func (c *Config) Text(name, value, help string) *atomic.Pointer[string] {
	v := new(atomic.Pointer[string])
	v.Store(&value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return *v.Load() },
		Set: func(s string) error { v.Store(&s); return nil }})
	return v
}

// Enum declares a parameter that is one of some words.
func (c *Config) Enum(name, value string, words []string, help string) *atomic.Pointer[string] {
	v := new(atomic.Pointer[string])
	v.Store(&value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return *v.Load() },
		Set: func(s string) error {
			s = strings.ToLower(s)
			for _, w := range words {
				if w == s {
					v.Store(&w)
					return nil
				}
			}
			return fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(words, ", "))
		}})
	return v
}

// ParseMemory reads a number of bytes with an optional unit (b k kb m mb g gb).
func ParseMemory(s string) (int64, error) {
	s = strings.ToLower(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || i == 0 && s[i] == '-') {
		i++
	}
	units := map[string]int64{"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30}
	mul, ok := units[s[i:]]
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil || !ok || n < 0 || n > (1<<63-1)/mul {
		return 0, fmt.Errorf("not a memory value")
	}
	return n * mul, nil
}
