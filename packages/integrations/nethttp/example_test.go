package nethttp_test

import (
	"log"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/limitkv/limitkv/packages/integrations/nethttp"
)

// Each API key has 100 requests a minute, 20 of them at once.
func Example() {
	limit, err := nethttp.New(nethttp.Options{
		Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}),
		Limits: func(r *http.Request) []nethttp.Limit {
			return []nethttp.Limit{{Key: "api:" + r.Header.Get("X-Api-Key"), Rule: "GCRA 100 60000 BURST 20"}}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(":8080", limit(http.NewServeMux())))
}
