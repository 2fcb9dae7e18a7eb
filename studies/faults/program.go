// One fault in Go with its twin: `program FAULT TRANSPORT faulty|healthy`. The server is a process of its own.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

var fault, transport, isFaulty = os.Args[1], os.Args[2], os.Args[3] == "faulty"

func isTLS() bool { return transport != "clear" && transport != "h2c" }

func protocols() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!strings.HasPrefix(transport, "h2"))
	protocols.SetHTTP2(transport == "h2")
	protocols.SetUnencryptedHTTP2(transport == "h2c")
	return protocols
}

// Bytes of a body where windows matter, and a window that limits it.
const bulk, window = 600_000, 32_768

func isOfWindows() bool { return strings.HasPrefix(fault, "go-window") }

func respond(writer http.ResponseWriter, request *http.Request) {
	io.Copy(io.Discard, request.Body)
	if fault == "go-window" {
		writer.Write(make([]byte, bulk))
		return
	}
	if fault == "go-think" && isFaulty {
		time.Sleep(300 * time.Millisecond)
	}
	if fault == "go-stall-within" {
		writer.Write(make([]byte, 20_000))
		writer.(http.Flusher).Flush()
		if isFaulty {
			time.Sleep(400 * time.Millisecond)
		}
	}
	writer.Write(make([]byte, 600))
}

func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(respond), Protocols: protocols(), ErrorLog: log.New(io.Discard, "", 0)}
	if isOfWindows() {
		server.HTTP2 = windows(fault == "go-window-upload" && isFaulty)
	}
	if !isTLS() {
		return server.Serve(listener)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	if transport == "tls12" {
		server.TLSConfig = &tls.Config{MaxVersion: tls.VersionTLS12}
	}
	return server.ServeTLS(listener, os.Getenv("FAULTS_CERT"), os.Getenv("FAULTS_KEY"))
}

// Windows that limit a path, or do not.
func windows(areSmall bool) *http.HTTP2Config {
	if areSmall {
		return &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: 2 * window}
	}
	return &http.HTTP2Config{MaxReceiveBufferPerStream: 4 << 20, MaxReceiveBufferPerConnection: 8 << 20}
}

func newTransport() *http.Transport {
	isTrusting := !(fault == "go-rejects" && isFaulty)
	config := &tls.Config{InsecureSkipVerify: isTrusting, ServerName: "localhost"}
	if path := os.Getenv("SSLKEYLOGFILE"); path != "" {
		if keys, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			config.KeyLogWriter = keys
		}
	}
	transport := &http.Transport{Protocols: protocols(), TLSClientConfig: config}
	if isOfWindows() {
		transport.HTTP2 = windows(fault == "go-window" && isFaulty)
	}
	return transport
}

func visit(address string) {
	scheme := "http"
	if isTLS() {
		scheme = "https"
	}
	shared := newTransport()
	requests := 8
	if isOfWindows() {
		requests = 2
	}
	for range requests {
		client := &http.Client{Transport: shared}
		if fault == "go-per-request" && isFaulty {
			client.Transport = newTransport()
		}
		request, _ := http.NewRequest("GET", scheme+"://"+address, nil)
		if fault == "go-window-upload" {
			request, _ = http.NewRequest("POST", scheme+"://"+address, bytes.NewReader(make([]byte, bulk)))
		}
		response, err := client.Do(request)
		if err != nil {
			return
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	shared.CloseIdleConnections()
	time.Sleep(20 * time.Millisecond)
}

func main() {
	if len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, serve())
		os.Exit(1)
	}
	server := exec.Command(os.Args[0], append(os.Args[1:], "server")...)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, _ := server.StdoutPipe()
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	address, _ := bufio.NewReader(output).ReadString('\n')
	visit(strings.TrimSpace(address))
	server.Process.Kill()
	server.Wait()
}
