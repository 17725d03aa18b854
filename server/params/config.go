// Package params, internal to the server, is the configuration: parameters as in redis.conf, CONFIG GET and SET, and flags.
// The code that uses a parameter declares it, once, and reads its value without a lock.
package params

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/resp/number"
)

// The reasons why CONFIG SET refuses a value, in Redis's words.
var (
	ErrNotInteger = errors.New("argument couldn't be parsed into an integer")
	ErrNotMemory  = errors.New("argument must be a memory value")
	ErrNotYesNo   = errors.New("argument must be 'yes' or 'no'")

	errWords         = errors.New("wrong number of arguments")
	errShare         = errors.New("percentage argument must be less or equal to 100")
	errMemoryOrShare = errors.New("argument must be a memory or percent value")
)

// ErrNotBetween is the reason for a number out of range.
func ErrNotBetween(lo, hi int64) error {
	return fmt.Errorf("argument must be between %d and %d inclusive", lo, hi)
}

// ErrNotAmong is the reason for a word that is not one of those allowed.
func ErrNotAmong(words []string) error {
	return fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(words, ", "))
}

// Config is the set of parameters.
type Config struct {
	mu      sync.Mutex
	params  map[string]*Param
	all     []*Param // in order of name; nil until needed
	change  map[string]*change
	lines   map[string]func() []string // from Lines, by their first word
	loading func() string

	maxBulk *atomic.Int64
	hash    *HashLimits
	set     *SetLimits
	zset    *ZSetLimits

	list        *ListLimits
	compression *atomic.Bool
	// SkipChecksums accepts payloads with any checksum, for tests that damage them.
	SkipChecksums atomic.Bool
}

// change is a function to call after some parameters have changed.
type change struct{ fn func() }

// Param is one parameter.
type Param struct {
	Name string
	// Alias is a second name, empty if there is none.
	Alias string
	// Immutable parameters can be set at the start only. Protected ones name files; CONFIG SET can set them only if
	// enable-protected-configs allows it.
	Immutable, Protected bool
	// Secret values are not logged.
	Secret bool
	// Inert parameters have no effect, but clients can read and set them. Adds: a parameter that is given several times at the
	// start has all the values. Words: the value is several words, each a word of a line in the file.
	Inert, Adds, Words bool
	// Hidden parameters are for tests: CONFIG GET shows them by their full name only.
	Hidden bool
	// NotLoading: CONFIG SET is refused while the server loads.
	NotLoading bool
	// Always: CONFIG REWRITE writes the parameter even with its default, which may be different at the next start.
	Always bool
	Get    func() string
	// Set checks and stores a value. Clients see its error.
	Set func(value string) error
	// Help is the flag's help text; if empty, --help omits the parameter.
	Help string

	of      string // of an alias: the parameter's name
	initial string // the default
}

// NewConfig makes an empty set.
func NewConfig() *Config { return &Config{params: make(map[string]*Param)} }

// Add declares a parameter.
func (c *Config) Add(p *Param) {
	if c.params[p.Name] != nil {
		panic("the parameter " + p.Name + " is declared twice")
	}
	p.initial = p.Get()
	c.params[p.Name] = p
	if p.Alias != "" {
		a := *p
		a.Name, a.of = p.Alias, p.Name
		c.params[p.Alias] = &a
	}
}

// Alias gives a parameter a second name.
func (c *Config) Alias(name, alias string) {
	p := *c.params[name]
	p.Name, p.of = alias, name
	c.Add(&p)
}

// Lines makes CONFIG REWRITE write lines that are not parameters, such as users. They replace the file's lines that begin with
// name.
func (c *Config) Lines(name string, now func() []string) {
	if c.lines == nil {
		c.lines = make(map[string]func() []string)
	}
	c.lines[name] = now
}

// OnChange registers fn for some parameters. It is called after a change, once even if several of them have changed.
func (c *Config) OnChange(fn func(), names ...string) {
	if c.change == nil {
		c.change = make(map[string]*change)
	}
	ch := &change{fn}
	for _, name := range names {
		c.change[name] = ch
	}
}

// MaxBulk is proto-max-bulk-len: the most bytes of an argument, and of a string that a command makes. Several families use it;
// the first call declares it.
func (c *Config) MaxBulk() *atomic.Int64 {
	if c.maxBulk == nil {
		c.maxBulk = c.Memory("proto-max-bulk-len", 512<<20, 1<<20, 1<<63-1, "the most bytes of an argument or a string")
	}
	return c.maxBulk
}

// Guard is the mutex of changes, for the check that no lock was left locked.
func (c *Config) Guard() *sync.Mutex { return &c.mu }

// Find returns the parameter with this name, in any case, or nil.
func (c *Config) Find(name string) *Param { return c.params[strings.ToLower(name)] }

// Value returns a parameter's value, empty if there is no such parameter.
func (c *Config) Value(name string) string {
	if p := c.Find(name); p != nil {
		return p.Get()
	}
	return ""
}

// WhileLoading sets the function that returns the error for NotLoading parameters, "" if there is none.
func (c *Config) WhileLoading(text func() string) { c.loading = text }

// All lists the parameters in order of name. All are declared before the server serves, so that the list is made once.
func (c *Config) All() []*Param {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) != len(c.params) {
		c.all = make([]*Param, 0, len(c.params))
		for _, p := range c.params {
			c.all = append(c.all, p)
		}
		sort.Slice(c.all, func(i, j int) bool { return c.all[i].Name < c.all[j].Name })
	}
	return c.all
}

// Set is a new value for the parameter with this name or alias.
type Set struct{ Name, Value string }

// Change sets all of the parameters or none. local tells whether the client is on this machine. It returns the error text,
// empty if all were set.
func (c *Config) Change(sets []Set, local bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	params := make([]*Param, len(sets))
	seen := make(map[string]bool)
	failure := ""
	for i, set := range sets {
		p := c.Find(set.Name)
		switch {
		case p == nil:
			return "ERR Unknown option or number of arguments for CONFIG SET - '" + set.Name + "'"
		case p.Protected && !c.protectedAllowed(local):
			failure = failed(set.Name, "can't set protected config")
		case p.Immutable:
			failure = failed(set.Name, "can't set immutable config")
		case p.NotLoading && c.loading != nil:
			failure = c.loading()
		case seen[p.Name]:
			failure = failed(set.Name, "duplicate parameter")
		}
		if failure != "" {
			return failure
		}
		seen[p.Name] = true
		params[i] = p
	}
	old := make([]string, len(params))
	for i, p := range params {
		old[i] = p.Get()
		if err := p.Set(sets[i].Value); err != nil {
			for j := i - 1; j >= 0; j-- {
				_ = params[j].Set(old[j]) // an old value is always valid
			}
			return failed(p.Name, err.Error())
		}
	}
	c.changed(params)
	return ""
}

func (c *Config) protectedAllowed(local bool) bool {
	allowed := c.Value("enable-protected-configs")
	return allowed == "yes" || allowed == "local" && local
}

func failed(name, why string) string {
	return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why
}

// changed calls the functions that OnChange registered for these parameters.
func (c *Config) changed(params []*Param) {
	done := make(map[*change]bool)
	for _, p := range params {
		for _, name := range []string{p.Name, p.of} {
			if ch := c.change[name]; ch != nil && !done[ch] {
				done[ch] = true
				ch.fn()
			}
		}
	}
}

// Start sets the parameters given at the start. If a parameter is given several times, the last value counts. With Adds the
// values add up, and an empty value cancels those before it. warn is called for settings without effect.
func (c *Config) Start(settings []Setting, warn func(text string)) error {
	params := make([]*Param, 0, len(settings))
	last, given := make(map[string]int), make(map[string]bool)
	for i, set := range settings {
		p, known := c.ours(set)
		switch {
		case !known:
			return fmt.Errorf("%s: there is no parameter %q%s", set.Where, set.Name, c.resembling(set.Name))
		case set.Extra < 0 && (p == nil || !p.Words || p.initial == ""), set.Extra > 0 && p != nil && !p.Words:
			return fmt.Errorf("%s: %v", set.at(), errWords)
		case p == nil:
			warn(set.at() + " has no effect in limitkv")
			continue
		}
		last[p.first()] = i
	}
	for i, set := range settings {
		p, _ := c.ours(set)
		if p == nil || !p.Words && last[p.first()] != i { // a parameter of several words may have only some of them in each line
			continue
		}
		value := set.Value
		if p.Adds && given[p.Name] && value != "" {
			value = strings.TrimSpace(p.Get() + " " + value)
		}
		given[p.Name] = true
		was := p.Get()
		if err := p.Set(value); err != nil {
			return fmt.Errorf("%s: %v", set.at(), err)
		}
		if p.Inert && p.Get() != was {
			warn(set.at() + " has no effect in limitkv")
		}
		params = append(params, p)
	}
	c.changed(params)
	return nil
}

// Int declares an integer parameter from lo to hi.
func (c *Config) Int(name string, value, lo, hi int64, help string) *atomic.Int64 {
	v := new(atomic.Int64)
	v.Store(value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return strconv.FormatInt(v.Load(), 10) },
		Set: func(s string) error {
			n, ok := number.ParseInt([]byte(s))
			if !ok {
				return ErrNotInteger
			}
			if n < lo || n > hi {
				return ErrNotBetween(lo, hi)
			}
			v.Store(n)
			return nil
		}})
	return v
}

// Memory declares a parameter in bytes, with an optional unit.
func (c *Config) Memory(name string, value, lo, hi int64, help string) *atomic.Int64 {
	v := new(atomic.Int64)
	v.Store(value)
	c.Add(&Param{Name: name, Help: help,
		Get: func() string { return strconv.FormatInt(v.Load(), 10) },
		Set: func(s string) error {
			n, err := ParseMemory(s)
			if errors.Is(err, ErrNotMemory) {
				return err
			}
			if err != nil || n < lo || n > hi {
				return ErrNotBetween(lo, hi)
			}
			v.Store(n)
			return nil
		}})
	return v
}

// MemoryOrShare declares a parameter in bytes or per cent, and returns a function that reads it. One of its results is 0.
func (c *Config) MemoryOrShare(name, help string) func() (bytes, percent int64) {
	var v atomic.Int64 // negative: per cent
	c.Add(&Param{Name: name, Help: help,
		Get: func() string {
			if n := v.Load(); n < 0 {
				return strconv.FormatInt(-n, 10) + "%"
			}
			return strconv.FormatInt(v.Load(), 10)
		},
		Set: func(s string) error {
			if text, ok := strings.CutSuffix(s, "%"); ok {
				if n, ok := number.ParseInt([]byte(text)); ok && n >= 0 {
					if n > 100 {
						return errShare
					}
					v.Store(-n)
					return nil
				}
			}
			n, err := ParseMemory(s)
			if errors.Is(err, ErrMemoryRange) {
				return errShare // as in Redis
			}
			if err != nil {
				return errMemoryOrShare
			}
			v.Store(n)
			return nil
		}})
	return func() (bytes, percent int64) {
		n := v.Load()
		return max(n, 0), max(-n, 0)
	}
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
				return ErrNotYesNo
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
			return ErrNotAmong(words)
		}})
	return v
}

// ErrMemoryRange is the error for a number of bytes that does not fit in an int64.
var ErrMemoryRange = errors.New("memory value out of range")

// ParseMemory parses a number of bytes with an optional unit (b k kb m mb g gb). Without digits it is 0, as in Redis. It
// returns ErrMemoryRange or ErrNotMemory.
func ParseMemory(s string) (int64, error) {
	s = strings.ToLower(s)
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || i == 0 && s[i] == '-') {
		i++
	}
	units := map[string]int64{"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30}
	mul, ok := units[s[i:]]
	if !ok {
		return 0, ErrNotMemory
	}
	if i == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	switch {
	case s[0] == '-' || err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, ErrNotMemory
	case err != nil || n > (1<<63-1)/mul:
		return 0, ErrMemoryRange
	}
	return n * mul, nil
}

// resembling suggests a parameter with a similar name, for an error.
func (c *Config) resembling(name string) string {
	for _, p := range c.All() {
		same := strings.NewReplacer("-", "", "_", "")
		if len(name) > 3 && (strings.HasPrefix(p.Name, name) || same.Replace(p.Name) == same.Replace(name)) {
			return fmt.Sprintf(" (did you mean %q?)", p.Name)
		}
	}
	return ""
}

// Supervised tells whether systemd waits for a message that the server is ready: the parameter supervised says so, and systemd
// has set the socket.
func (c *Config) Supervised() bool {
	p := c.Find("supervised")
	return p != nil && (p.Get() == "systemd" || p.Get() == "auto") && os.Getenv("NOTIFY_SOCKET") != ""
}

// Usage lists the parameters that have an effect, with their values, for --help: those with word in their name or description,
// in any case.
func (c *Config) Usage(word string) string {
	word = strings.TrimLeft(strings.ToLower(word), "-")
	var b strings.Builder
	also := make(map[string]string)
	for _, p := range c.All() {
		if p.of != "" {
			also[p.of] += ", also --" + p.Name
		}
	}
	for _, p := range c.All() {
		if p.Help == "" || p.of != "" || !strings.Contains(strings.ToLower(p.Name+also[p.Name]+" "+p.Help), word) {
			continue
		}
		value := p.Get()
		if p.Secret || value == "" {
			value = `""`
		}
		fmt.Fprintf(&b, "  --%s %s%s\n        %s\n", p.Name, value, also[p.Name], p.Help)
	}
	return b.String()
}
