// Command webhooks delivers the webhooks of several tenants from one queue: a tenant with many does not hold up another one,
// each tenant's are delivered in order, and what a receiver does not take is tried again, then put aside.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	queue, dead = "webhooks", "webhooks:dead"
	tries       = 3
)

func main() {
	ctx := context.Background()
	url := os.Getenv("LIMITKV_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379"
	}
	options, err := redis.ParseURL(url)
	must(err)
	options.ReadTimeout = -1 // a worker waits for as long as there is nothing to do
	client := redis.NewClient(options)
	must(client.Del(ctx, queue, dead).Err())

	// Each tenant is a group, of which one webhook at a time is under way, so that they arrive in order. A worker that
	// dies loses its lease after 10 seconds. What has failed is tried again two seconds later, three times in all.
	must(client.Do(ctx, "DQ.SET", queue, "LEASE", 10000, "TRIES", tries, "DEAD", dead, "BACKOFF", 2000, "MAX", 2000, "GROUPS", "CONC", 1).Err())

	receivers := receive()
	defer receivers.Close()
	for n := range 4 {
		add(ctx, client, "acme", n+1)
	}
	add(ctx, client, "broken", 1)
	add(ctx, client, "tiny", 1)
	for done := 0; done < 6; {
		done += deliver(ctx, client, receivers.URL)
	}

	letters, err := client.Do(ctx, "DQ.PEEK", dead, "FULL").Slice()
	must(err)
	for _, letter := range letters {
		fmt.Printf("%s was put aside: %s\n", field(letter, "id"), field(letter, "reason"))
	}
	back, err := client.Do(ctx, "DQ.REQUEUE", dead, queue).Int()
	must(err)
	fmt.Printf("brought back, now that its receiver is mended: %d\n", back)
	mended = true
	deliver(ctx, client, receivers.URL)
}

func add(ctx context.Context, client *redis.Client, tenant string, n int) {
	id := fmt.Sprintf("%s:%d", tenant, n)
	must(client.Do(ctx, "DQ.ADD", queue, "GROUP", tenant, "ID", id, fmt.Sprintf(`{"event": %d}`, n)).Err())
}

// deliver waits for a webhook and delivers it. It returns how many are done with: 0 if it is tried again.
func deliver(ctx context.Context, client *redis.Client, url string) int {
	popped, err := client.Do(ctx, "DQ.POP", queue, "BLOCK", 0).Slice()
	must(err)
	entry := popped[0].([]any)
	id, payload, attempt := entry[0].(string), entry[1].(string), entry[3].(int64)
	tenant, _, _ := strings.Cut(id, ":")
	answer, err := http.Post(url+"/"+tenant, "application/json", bytes.NewBufferString(payload))
	must(err)
	answer.Body.Close()
	name, _, _ := strings.Cut(id, "#")
	if answer.StatusCode == http.StatusOK {
		fmt.Printf("%s is delivered\n", name)
		must(client.Do(ctx, "DQ.ACK", queue, id).Err()) // with the attempt, so that it ends this lease and no other
		return 1
	}
	fmt.Printf("%s fails, attempt %d\n", name, attempt)
	must(client.Do(ctx, "DQ.NACK", queue, id, "REASON", answer.Status).Err())
	if attempt == tries {
		return 1
	}
	return 0
}

var mended bool

// receive stands for the tenants' own servers.
func receive() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/broken" && !mended {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
}

// field finds a field of an entry that DQ.PEEK FULL shows as names and values.
func field(entry any, name string) any {
	if fields, ok := entry.(map[any]any); ok {
		return fields[name]
	}
	fields := entry.([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == name {
			return fields[i+1]
		}
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
