// An exchange: starts a server, sends it requests one after another over one connection, and ends it.
//
//	client KIND REQUESTS SERVER ARGUMENT...
//
// The server prints its port. Every response is checked. KIND: h1, tls, h2, grpc, or pipeline: four requests of HTTP/1.1
// are sent together, and the next four after their responses.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(3)
	}
}

func main() {
	kind := os.Args[1]
	requests, err := strconv.Atoi(os.Args[2])
	check(err)
	server := exec.Command(os.Args[3], os.Args[4:]...)
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	check(err)
	check(server.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	check(err)
	address := "127.0.0.1:" + strings.TrimSpace(line)
	if kind == "pipeline" {
		pipeline(address, requests)
	} else {
		sequence(kind, address, requests)
	}
	server.Process.Kill()
	server.Wait()
}

func sequence(kind, address string, requests int) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	url, method := "http://"+address+"/", "GET"
	switch kind {
	case "tls":
		url = "https://" + address + "/"
	case "h2", "grpc":
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	client := &http.Client{Transport: transport}
	for range requests {
		var content io.Reader
		length := 600
		if kind == "grpc" {
			method, length = "POST", 605
			message := make([]byte, 5+20)
			binary.BigEndian.PutUint32(message[1:], 20)
			content = bytes.NewReader(message)
		}
		request, err := http.NewRequest(method, url, content)
		check(err)
		if kind == "grpc" {
			request.Header.Set("Content-Type", "application/grpc")
			request.Header.Set("Te", "trailers")
		}
		response, err := client.Do(request)
		check(err)
		body, err := io.ReadAll(response.Body)
		check(err)
		response.Body.Close()
		if response.StatusCode != 200 || len(body) != length {
			check(fmt.Errorf("status %d, %d bytes", response.StatusCode, len(body)))
		}
		if kind == "grpc" && response.Trailer.Get("Grpc-Status") != "0" {
			check(fmt.Errorf("trailers %v", response.Trailer))
		}
	}
}

func pipeline(address string, requests int) {
	connection, err := net.Dial("tcp", address)
	check(err)
	reader := bufio.NewReader(connection)
	for done := 0; done < requests; done += 4 {
		_, err := connection.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\nHost: gate\r\n\r\n", 4)))
		check(err)
		for range 4 {
			response, err := http.ReadResponse(reader, nil)
			check(err)
			_, err = io.Copy(io.Discard, response.Body)
			check(err)
		}
	}
}
