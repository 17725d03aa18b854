package acl

// Users from the configuration and from the ACL file.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

const errNoFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

// start loads the users that there are at the start.
func (f *family) start() error {
	file := *f.file.Load()
	if file != "" && len(f.s.UserSettings) > 0 {
		return errors.New("users are defined in the configuration and there is an aclfile: it must be one of them")
	}
	seen := map[string]bool{}
	for _, set := range f.s.UserSettings {
		if err := f.define(set.Value, seen); err != nil {
			return fmt.Errorf("%s: user: %w", set.Where, err)
		}
	}
	if file != "" {
		if problems := f.read(nil); problems != "" {
			return errors.New("aclfile: " + problems)
		}
	}
	return nil
}

// define makes a user of a line of the configuration.
func (f *family) define(line string, seen map[string]bool) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return errors.New("there is no name")
	}
	name := words[0]
	if seen[name] {
		return errDuplicate
	}
	seen[name] = true
	rules, unmatched := merge(words[1:])
	if unmatched >= 0 {
		return fmt.Errorf("unmatched parenthesis in the selector that begins at %q", words[1+unmatched])
	}
	r := f.nothing()
	for _, rule := range rules {
		if err := f.apply(r, rule); err != nil {
			return fmt.Errorf("%q: %w", rule, err)
		}
	}
	if !r.on {
		f.s.Logf('n', "the user %q is off: there is no rule \"on\"", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.users[name]; u != nil {
		f.set(u, r)
	} else {
		f.add(name, r)
	}
	return nil
}

// lines are the users as the configuration has them, none if there is a file of
// users.
func (f *family) lines() (list []string) {
	if *f.file.Load() != "" {
		return nil
	}
	for _, u := range f.sorted() {
		list = append(list, line(u))
	}
	return list
}

func (f *family) load(c *command.Ctx) {
	if *f.file.Load() == "" {
		c.Error(errNoFile)
		return
	}
	if problems := f.read(c); problems != "" {
		c.Error("ERR " + problems)
		return
	}
	c.OK()
}

// read replaces all users by those of the ACL file, or returns what is wrong
// with it. Sessions of users who are gone are closed.
func (f *family) read(c *command.Ctx) (problems string) {
	path := *f.file.Load()
	text, err := os.ReadFile(path)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		why := err.Error()
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s", path, strings.ToUpper(why[:1])+why[1:])
	}
	loaded, problems := f.parse(path, string(text))
	if problems != "" {
		return problems + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	if loaded[command.DefaultUser] == nil {
		loaded[command.DefaultUser] = f.everything()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, u := range f.users {
		old, now := rightsOf(u), loaded[name]
		if now == nil {
			delete(f.users, name)
			f.set(u, f.nothing())
			continue
		}
		f.set(u, now)
		f.endListeners(c, u, old, now)
		delete(loaded, name)
	}
	for name, r := range loaded {
		f.add(name, r)
	}
	for _, s := range f.s.Clients.All() {
		if u := s.User(); u != nil && f.users[u.Name] != u {
			f.end(c, s)
		}
	}
	return ""
}

// parse reads an ACL file.
func (f *family) parse(path, text string) (loaded map[string]*rights, problems string) {
	loaded = map[string]*rights{}
	for i, row := range strings.Split(text, "\n") {
		row = strings.Trim(row, " \t\r\n")
		if row == "" {
			continue
		}
		at := fmt.Sprintf("%s:%d", path, i+1)
		words := strings.Split(row, " ")
		switch {
		case words[0] != "user" || len(words) < 2:
			problems += at + " should start with user keyword followed by the username. "
			continue
		case hasSpaces(words[1]):
			problems += fmt.Sprintf("'%s: username '%s' contains invalid characters. ", at, words[1])
			continue
		case loaded[words[1]] != nil:
			problems += fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d. ", words[1], i+1)
			continue
		}
		r := f.nothing()
		loaded[words[1]] = r
		rules, unmatched := merge(words[2:])
		if unmatched >= 0 {
			problems += at + ": Unmatched parenthesis in selector definition."
			continue
		}
		wrong := false
		for _, rule := range rules {
			rule = strings.Trim(rule, "\t\r\n")
			switch err := f.apply(r, rule); {
			case err == nil:
			case errors.Is(err, errUnknown):
				problems += fmt.Sprintf("%s: Error in applying operation '%s': %s. ", at, rule, err)
			case !wrong:
				problems += fmt.Sprintf("%s: %s. ", at, err)
				wrong = true
			}
		}
	}
	return loaded, problems
}

func (f *family) save(c *command.Ctx) {
	path := *f.file.Load()
	if path == "" {
		c.Error(errNoFile)
		return
	}
	var b strings.Builder
	for _, u := range f.sorted() {
		b.WriteString(line(u) + "\n")
	}
	if err := replace(path, b.String()); err != nil {
		f.s.Logf('w', "ACL SAVE: %v", err)
		c.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.OK()
}

// replace writes a file so that there is always a whole one.
func replace(path, text string) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.WriteString(text)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}
