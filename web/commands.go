package web

// The page's requests: they run commands and get the replies in JSON.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// ask is the body of a request from the page.
type ask struct {
	// DB is the database. Commands run one after the other; an error reply does not stop them.
	DB       int        `json:"db"`
	Commands [][]string `json:"commands"`
	// Try runs no commands: the answer has for each command the error that the user would get for lack of permissions, or "".
	Try bool `json:"try"`
}

// commandsMax is how many commands a request may have.
const commandsMax = 100

// commands runs commands and answers with the list of their replies. An error reply is {"error": text}.
func (s *Site) commands(w http.ResponseWriter, r *http.Request) {
	// A page of another site can send forms here, and the browser adds the password that it has stored. But for this content
	// type, the browser first asks for permission (CORS), which this server does not give.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		http.Error(w, "the body must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
		http.Error(w, "this is for the server's own page", http.StatusForbidden)
		return
	}
	var body ask
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		http.Error(w, "the body is not {\"db\": number, \"commands\": [[word, ...], ...]}: "+err.Error(), http.StatusBadRequest)
		return
	}
	if len(body.Commands) == 0 || len(body.Commands) > commandsMax {
		http.Error(w, fmt.Sprintf("there must be 1 to %d commands", commandsMax), http.StatusBadRequest)
		return
	}
	c, ok := s.signIn(w, r)
	if !ok {
		return
	}
	defer c.close()
	replies := make([]any, 0, len(body.Commands))
	if body.Try {
		for _, args := range body.Commands {
			replies = append(replies, s.o.May(userOf(r), args))
		}
		answer(w, replies)
		return
	}
	if body.DB != 0 {
		reply, err := c.do([]string{"SELECT", strconv.Itoa(body.DB)})
		if e, refused := reply.(failure); refused || err != nil {
			http.Error(w, string(e), http.StatusBadRequest)
			return
		}
	}
	for _, args := range body.Commands {
		if len(args) == 0 {
			replies = append(replies, plain(failure("ERR an empty command")))
			continue
		}
		if text := s.o.Admit(args); text != "" {
			replies = append(replies, plain(failure(text)))
			continue
		}
		reply, err := c.do(args)
		if err != nil { // the connection is broken
			replies = append(replies, plain(failure("ERR "+err.Error())))
			break
		}
		replies = append(replies, plain(reply))
	}
	answer(w, replies)
}

func answer(w http.ResponseWriter, replies []any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(replies) // an error means that the client is gone
}

// userOf is the user that a request names, the default user if it names none.
func userOf(r *http.Request) string {
	if user, _, _ := r.BasicAuth(); user != "" {
		return user
	}
	return "default"
}

// plain converts a reply to values for encoding/json. A string that is not text becomes {"base64": text}. Keys of a map that
// are not strings are converted to strings.
func plain(v any) any {
	switch v := v.(type) {
	case failure:
		return map[string]any{"error": printable(string(v))}
	case string:
		return printable(v)
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case int64:
		if v > 1<<53 || v < -1<<53 { // as a number, JavaScript would round it
			return strconv.FormatInt(v, 10)
		}
		return v
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case pairs:
		object := make(map[string]any, len(v)/2)
		for i := 0; i+1 < len(v); i += 2 {
			object[fmt.Sprint(v[i])] = plain(v[i+1])
		}
		return object
	}
	return v
}

func printable(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]any{"base64": base64.StdEncoding.EncodeToString([]byte(s))}
}

// signIn makes a connection for the user that a request names, the default user if it names none. If ok is false, signIn has
// answered the request.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) (c *client, ok bool) {
	c = s.dial(r.Context(), r)
	hello := []string{"HELLO", "3"}
	if _, password, named := r.BasicAuth(); named {
		hello = append(hello, "AUTH", userOf(r), password)
	}
	reply, err := c.do(hello)
	e, refused := reply.(failure)
	if err == nil && !refused {
		return c, true
	}
	c.close()
	switch {
	case err != nil:
		http.Error(w, "the server does not answer", http.StatusServiceUnavailable)
	case e.code() == "NOAUTH" || e.code() == "WRONGPASS":
		w.Header().Set("WWW-Authenticate", `Basic realm="limitkv", charset="UTF-8"`)
		http.Error(w, string(e), http.StatusUnauthorized)
	default: // loading, or too many clients
		http.Error(w, string(e), http.StatusServiceUnavailable)
	}
	return nil, false
}

// code is an error's first word.
func (f failure) code() string {
	for i := range len(f) {
		if f[i] == ' ' {
			return string(f[:i])
		}
	}
	return string(f)
}
