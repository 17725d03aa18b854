package commands_test

// Dependencies of the server: none is a bare function, because nobody could say who sets it.

import (
	"reflect"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// The server's dependencies exist, and are no functions.
func TestServer(t *testing.T) {
	s := livetest.Start(t)
	if s.Functions == nil || s.Log == nil || s.Host == nil {
		t.Error("nobody is asked for functions, for lines of the log or for what is above")
	}
	fields := 0
	for _, of := range []reflect.Type{reflect.TypeFor[server.Server](), reflect.TypeFor[command.Server](), reflect.TypeFor[command.Stats](),
		reflect.TypeFor[command.Worker](), reflect.TypeFor[command.Session]()} {
		for i := range of.NumField() {
			fields++
			if f := of.Field(i); f.Type.Kind() == reflect.Func {
				t.Errorf("%v.%s is a function", of, f.Name)
			}
		}
	}
	whole := reflect.ValueOf(s.Server).Elem()
	for i := range whole.NumField() {
		if f := whole.Type().Field(i); f.IsExported() && f.Type.Kind() == reflect.Pointer && whole.Field(i).IsNil() {
			t.Errorf("nobody is Server.%s", f.Name)
		}
	}
	if fields < 50 {
		t.Errorf("there are %d fields", fields)
	}
}
