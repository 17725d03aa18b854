package luavm

// Making functions. A script that begins with twenty local functions, as scripts of client libraries do, makes as many
// closures and upvalues at each run. gopher-lua allocates three pieces of memory for each, and searches an upvalue from the
// start of the list of open upvalues. Here their memory is reused by the next run, and the open upvalue of a register
// is remembered.
//
// Reuse is safe since no function of a script outlives its run: globals, libraries and metatables are read-only, so a script
// has nowhere to store one. A library of functions can store functions in its local variables, so its functions get
// their own memory.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

const (
	runFunctions = 64 // closures of a run that use reused memory
	runUpvalues  = 64
	runCaptures  = 256 // places for the upvalues of closures
	openKnown    = 64  // registers whose open upvalues are remembered

	blockFunctions = 16 // further closures are cut off blocks of this many
	blockUpvalues  = 16
	blockCaptures  = 32
)

// closures makes closures and upvalues. The zero value is ready to use.
type closures struct {
	*runMemory        // nil until a script makes a function
	run        bool   // a script runs: closures made now end with it
	functions  int    // how many are in use
	upvalues   int    // likewise
	captures   int    // likewise
	open       opened // by register
	blocks     blocks // of the run
}

// blocks is the unused rest of the blocks allocated last. A block stays in memory as long as one piece of it is in use.
type blocks struct {
	functions []lua.LFunction
	upvalues  []luaUpvalue
	captures  []*lua.Upvalue
}

type opened [openKnown]*luaUpvalue

type runMemory struct {
	functionsOf [runFunctions]lua.LFunction
	upvaluesOf  [runUpvalues]luaUpvalue
	capturesOf  [runCaptures]*lua.Upvalue
}

// begin begins the run of a script.
func (c *closures) begin() {
	c.end() // a panic may have ended the run before
	c.run = true
}

// end makes the memory of a run's closures free for the next run.
func (c *closures) end() {
	c.run = false
	if c.functions == 0 {
		return
	}
	c.blocks = blocks{}
	clear(c.functionsOf[:c.functions])
	clear(c.upvaluesOf[:c.upvalues])
	clear(c.capturesOf[:c.captures])
	c.functions, c.upvalues, c.captures, c.open = 0, 0, 0, opened{}
}

// closure executes OP_CLOSURE. One instruction per upvalue follows it and says which variable is captured.
func (c *closures) closure(ls *luaState, cf *luaFrame, inst instruction) *lua.LFunction {
	proto := cf.Fn.Proto.FunctionPrototypes[inst.Bx()]
	f := c.function(int(proto.NumUpvalues))
	f.Env, f.Proto = cf.Fn.Env, proto
	for i := range f.Upvalues {
		from := instruction(cf.Fn.Proto.Code[cf.Pc])
		cf.Pc++
		if from.Op() == lua.OP_GETUPVAL {
			f.Upvalues[i] = cf.Fn.Upvalues[from.B()]
		} else {
			f.Upvalues[i] = (*lua.Upvalue)(unsafe.Pointer(c.capture(ls, cf.LocalBase+from.B())))
		}
	}
	return f
}

// function makes a function with n upvalues.
func (c *closures) function(n int) (f *lua.LFunction) {
	switch {
	case !c.run:
		f = new(lua.LFunction)
	case c.functions == runFunctions:
		f = cut(&c.blocks.functions, 1, blockFunctions)
	default:
		if c.runMemory == nil {
			c.runMemory = new(runMemory)
		}
		f = &c.functionsOf[c.functions]
		c.functions++
	}
	switch {
	case n == 0:
	case !c.run || n > blockCaptures:
		f.Upvalues = make([]*lua.Upvalue, n)
	case c.captures+n > runCaptures:
		f.Upvalues = unsafe.Slice(cut(&c.blocks.captures, n, blockCaptures), n)
	default:
		f.Upvalues = c.capturesOf[c.captures : c.captures+n : c.captures+n]
		c.captures += n
	}
	return f
}

// cut cuts n places off a block, and returns the first. If fewer are left, it allocates a new block of size places.
func cut[T any](block *[]T, n, size int) *T {
	if len(*block) < n {
		*block = make([]T, size)
	}
	first := &(*block)[0]
	*block = (*block)[n:]
	return first
}

// capture returns the open upvalue of a register, making it if there is none. The list is sorted by register, and an
// upvalue is on it until it is closed.
func (c *closures) capture(ls *luaState, index int) *luaUpvalue {
	known := &c.open[index%openKnown]
	if uv := *known; uv != nil && uv.index == index && uv.reg == ls.reg && !uv.closed {
		return uv
	}
	link := &ls.uvcache
	for *link != nil && (*link).index < index {
		link = &(*link).next
	}
	uv := *link
	if uv == nil || uv.index != index {
		switch {
		case !c.run:
			uv = new(luaUpvalue)
		case c.upvalues == runUpvalues:
			uv = cut(&c.blocks.upvalues, 1, blockUpvalues)
		default:
			uv = &c.upvaluesOf[c.upvalues]
			c.upvalues++
		}
		uv.next, uv.reg, uv.index = *link, ls.reg, index
		*link = uv
	}
	*known = uv
	return uv
}

// upvalue returns upvalue i of the running function.
func (cf *luaFrame) upvalue(i int) *luaUpvalue {
	return *(**luaUpvalue)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(cf.Fn.Upvalues)), uintptr(i)*unsafe.Sizeof(cf)))
}
