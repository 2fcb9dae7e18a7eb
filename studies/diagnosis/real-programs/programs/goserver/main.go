// The requests of server.py, by net/http. usage: goserver PORT LOG [CERT KEY]; as a client: goserver get N URL...
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

func wait(name string, ms int) {
	start := time.Now()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	f, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		fmt.Fprintf(f, "%s %d %d\n", name, start.UnixMicro(), time.Now().UnixMicro())
		f.Close()
	}
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}

func respond(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if ms := number(r, "think", 0); ms > 0 {
		wait("think", ms)
	}
	size := number(r, "size", 500)
	body := bytes.Repeat([]byte("x"), size)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	if ms := number(r, "late", 0); ms > 0 {
		at := number(r, "at", size/2)
		w.Write(body[:at])
		w.(http.Flusher).Flush()
		wait("late", ms)
		body = body[at:]
	}
	w.Write(body)
}

func get() {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, url := range os.Args[2:] {
		r, err := client.Get(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		n, err := io.Copy(io.Discard, r.Body)
		r.Body.Close()
		fmt.Println(r.StatusCode, n, err)
	}
}

func main() {
	if os.Args[1] == "get" {
		get()
		return
	}
	http.HandleFunc("/r", respond)
	s := &http.Server{Addr: "0.0.0.0:" + os.Args[1], TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	if len(os.Args) > 3 {
		fmt.Println(s.ListenAndServeTLS(os.Args[3], os.Args[4]))
	} else {
		fmt.Println(s.ListenAndServe())
	}
}
