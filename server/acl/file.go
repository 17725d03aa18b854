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

// Start loads the users from the configuration or the ACL file.
func (acl *Users) Start() error {
	file := *acl.file.Load()
	if file != "" && len(acl.s.UserSettings) > 0 {
		return errors.New("users are defined in the configuration and there is an aclfile: it must be one of them")
	}
	seen := map[string]bool{}
	for _, set := range acl.s.UserSettings {
		if err := acl.define(set.Value, seen); err != nil {
			return fmt.Errorf("%s: user: %w", set.Where, err)
		}
	}
	if file != "" {
		if problems := acl.read(nil); problems != "" {
			return errors.New("aclfile: " + problems)
		}
	}
	return nil
}

// define makes a user from a line of the configuration.
func (acl *Users) define(line string, seen map[string]bool) error {
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
	r := acl.nothing()
	for _, rule := range rules {
		if err := acl.apply(r, rule); err != nil {
			return fmt.Errorf("%q: %w", rule, err)
		}
	}
	if !r.on {
		acl.s.Logf('n', "the user %q is off: there is no rule \"on\"", name)
	}
	acl.mu.Lock()
	defer acl.mu.Unlock()
	if u := acl.users[name]; u != nil {
		acl.set(u, r)
	} else {
		acl.add(name, r)
	}
	return nil
}

// lines returns the users as lines of the configuration, none if there is an ACL file.
func (acl *Users) lines() []string {
	if *acl.file.Load() != "" {
		return nil
	}
	return acl.Lines()
}

// Load reads the ACL file again. If it returns an error text, it has changed nothing.
func (acl *Users) Load(c *command.Ctx) string {
	if *acl.file.Load() == "" {
		return errNoFile
	}
	if problems := acl.read(c); problems != "" {
		return "ERR " + problems
	}
	return ""
}

// read replaces all users by those of the ACL file, or returns the errors in it. It closes the sessions of users who are not
// in the file.
func (acl *Users) read(c *command.Ctx) (problems string) {
	path := *acl.file.Load()
	text, err := os.ReadFile(path)
	if err != nil {
		var reason *fs.PathError
		if errors.As(err, &reason) {
			err = reason.Err
		}
		why := err.Error()
		return fmt.Sprintf("Error loading ACLs, opening file '%s': %s", path, strings.ToUpper(why[:1])+why[1:])
	}
	loaded, problems := acl.parse(path, string(text))
	if problems != "" {
		return problems + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	if loaded[command.DefaultUser] == nil {
		loaded[command.DefaultUser] = acl.everything()
	}
	acl.mu.Lock()
	defer acl.mu.Unlock()
	for name, u := range acl.users {
		old, now := rightsOf(u), loaded[name]
		if now == nil {
			delete(acl.users, name)
			acl.set(u, acl.nothing())
			continue
		}
		acl.set(u, now)
		acl.endListeners(c, u, old, now)
		delete(loaded, name)
	}
	for name, r := range loaded {
		acl.add(name, r)
	}
	for _, s := range acl.s.Clients.All() {
		if u := s.User(); u != nil && acl.users[u.Name] != u {
			acl.end(c, s)
		}
	}
	return ""
}

// parse reads an ACL file.
func (acl *Users) parse(path, text string) (loaded map[string]*rights, problems string) {
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
		r := acl.nothing()
		loaded[words[1]] = r
		rules, unmatched := merge(words[2:])
		if unmatched >= 0 {
			problems += at + ": Unmatched parenthesis in selector definition."
			continue
		}
		wrong := false
		for _, rule := range rules {
			rule = strings.Trim(rule, "\t\r\n")
			switch err := acl.apply(r, rule); {
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

// Save writes the ACL file, or returns an error text.
func (acl *Users) Save() string {
	path := *acl.file.Load()
	if path == "" {
		return errNoFile
	}
	if err := replace(path, strings.Join(acl.Lines(), "\n")+"\n"); err != nil {
		acl.s.Logf('w', "ACL SAVE: %v", err)
		return "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
	}
	return ""
}

// replace writes a file atomically.
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
