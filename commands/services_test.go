package commands_test

// What families do for each other.

import (
	"reflect"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server/command"
)

// Every service is there, and nothing that the server is asked for is a bare function, of which nobody could say who
// sets it.
func TestServices(t *testing.T) {
	s := livetest.Start(t)
	services := reflect.ValueOf(s.Server.Server.Services)
	for i := range services.NumField() {
		if f := services.Field(i); f.Kind() != reflect.Interface || f.IsNil() {
			t.Errorf("nobody is Services.%s", services.Type().Field(i).Name)
		}
	}
	if services.NumField() < 2 {
		t.Errorf("there are %d services", services.NumField())
	}
	for _, of := range []reflect.Type{reflect.TypeFor[command.Server](), reflect.TypeFor[command.Stats](), reflect.TypeFor[command.Worker](), reflect.TypeFor[command.Session]()} {
		for i := range of.NumField() {
			if f := of.Field(i); f.Type.Kind() == reflect.Func {
				t.Errorf("%v.%s is a function", of, f.Name)
			}
		}
	}
}
