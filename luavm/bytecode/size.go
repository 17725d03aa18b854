package bytecode

// The memory of compiled code.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Bytes is the memory of f and the functions in it, without their source, by the capacity of their slices. String constants
// without escapes alias the source, so they do not count.
func (f *Function) Bytes(source string) int64 {
	begin := uintptr(unsafe.Pointer(unsafe.StringData(source)))
	n := int64(unsafe.Sizeof(*f)) + int64(cap(f.Code))*4 + int64(cap(f.DbgSourcePositions))*8 +
		int64(cap(f.DbgCalls))*int64(unsafe.Sizeof(lua.DbgCall{})) + int64(cap(f.DbgLocals))*8 +
		int64(cap(f.Locals))*int64(unsafe.Sizeof(Local{})) + int64(cap(f.Hidden))*int64(unsafe.Sizeof(Hidden{})) +
		int64(cap(f.DbgUpvalues))*16 + int64(cap(f.FunctionPrototypes))*8 +
		int64(cap(f.Constants))*32 // an interface, and the string in stringConstants
	for _, k := range f.Constants {
		if s, ok := k.(lua.LString); ok {
			n += 16
			if at := uintptr(unsafe.Pointer(unsafe.StringData(string(s)))); at < begin || at >= begin+uintptr(len(source)) {
				n += int64(len(s))
			}
		} else if k != nil {
			n += 8
		}
	}
	for _, p := range f.FunctionPrototypes {
		n += Of(p).Bytes(source)
	}
	return n
}
