// Command visitor is both sides of a visit: it serves a greeting, or it asks for one and fails if there is none.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "visitor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "serve" {
		http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("a visit from", r.UserAgent())
			fmt.Fprintln(w, "welcome")
		})
		fmt.Println("open")
		return http.ListenAndServe(":8080", nil)
	}
	if len(args) == 2 && args[0] == "get" {
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(args[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	}
	return fmt.Errorf("usage: visitor serve | visitor get URL")
}
