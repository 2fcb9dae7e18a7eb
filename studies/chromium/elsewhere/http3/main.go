// http3 CERTIFICATE KEY OBJECTS.json: HTTP/3 at the addresses of eight hosts, with the objects that server.cjs lists.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go/http3"
)

type object struct {
	URL, Type string
	Delay     int
	Body      []byte
}

func main() {
	list, err := os.ReadFile(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	var objects []object
	if err := json.Unmarshal(list, &objects); err != nil {
		log.Fatal(err)
	}
	known := map[string]object{}
	for _, object := range objects {
		known[object.URL] = object
	}
	respond := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		object, found := known[request.Host+request.URL.Path]
		if !found {
			response.WriteHeader(http.StatusNotFound)
			return
		}
		time.Sleep(time.Duration(object.Delay) * time.Millisecond)
		response.Header().Set("Content-Type", object.Type)
		response.Header().Set("Content-Length", strconv.Itoa(len(object.Body)))
		response.Header().Set("Access-Control-Allow-Origin", "*")
		response.Write(object.Body)
	})
	for host := 0; host < 8; host++ {
		address := fmt.Sprintf("10.50.2.1%d:443", host)
		go func() { log.Fatal(http3.ListenAndServeQUIC(address, os.Args[1], os.Args[2], respond)) }()
	}
	select {}
}
