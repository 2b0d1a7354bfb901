// A decision and its feedback, with the defaults of Go's net/http.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func ask(url string, body string) map[string]any {
	reply, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != 200 {
		panic(reply.Status)
	}
	var found map[string]any
	if err := json.NewDecoder(reply.Body).Decode(&found); err != nil {
		panic(err)
	}
	return found
}

func main() {
	model := os.Args[1]
	made := ask(model+"/decide", `{"record": {"subject": "card charged twice"}}`)
	result := ask(model+"/feedback", fmt.Sprintf(`{"id": %q, "correct": true}`, made["id"]))
	fmt.Println(made["id"], result["status"])
}
