package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/c5c3/openstack-upgrade/test/traffic/ledger"
)

var client = &http.Client{Timeout: 20 * time.Second}

func call(ctx context.Context, method, url, body string) (status int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(bytes.TrimSpace(raw)), err
}

// answers asks and insists on the status.
func answers(t *testing.T, want int, method, url, body string) string {
	t.Helper()
	status, answer, err := call(t.Context(), method, url, body)
	require.NoError(t, err)
	require.Equal(t, want, status, "%s %s: %s", method, url, answer)
	return answer
}

// create makes an image and returns its id.
func create(t *testing.T, address, name string) string {
	t.Helper()
	id, ok := decode(t, answers(t, http.StatusCreated, http.MethodPost, address+"/v2/images", `{"name":"`+name+`","value":"value of `+name+`"}`))["id"].(string)
	require.True(t, ok)
	return id
}

// crowd is clients that write, read and change images until they are told to stop.
type crowd struct {
	t      *testing.T
	books  *ledger.Ledger
	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	made   map[string]string
}

// gather lets a client work at each of the addresses; all of them read and change what any of them has written.
func gather(t *testing.T, addresses ...string) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{t: t, books: ledger.Open(time.Now()), cancel: cancel, made: map[string]string{}}
	t.Cleanup(func() { cancel(); c.done.Wait() })
	for i, address := range addresses {
		c.done.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				c.turn(address, fmt.Sprintf("image-%d-%d", i, turn))
			}
		})
	}
	return c
}

func (c *crowd) turn(address, name string) {
	body := fmt.Sprintf(`{"name":%q,"value":"first %s"}`, name, name)
	var made struct{ ID, Name, Value string }
	if !c.enter("create", http.StatusCreated, http.MethodPost, address+"/v2/images", body, &made) {
		return
	}
	c.enter("read", http.StatusOK, http.MethodGet, address+"/v2/images/"+made.ID, "", nil)
	c.mu.Lock()
	c.made[made.ID] = made.Value
	older := ""
	for older = range c.made { // any one will do, and Go picks it by chance
		break
	}
	c.mu.Unlock()
	c.enter("read older", http.StatusOK, http.MethodGet, address+"/v2/images/"+older, "", nil)
	c.enter("change", http.StatusOK, http.MethodPatch, address+"/v2/images/"+older,
		fmt.Sprintf(`[{"op":"replace","path":"/value","value":"changed by %s"}]`, name), nil)
}

func (c *crowd) enter(kind string, want int, method, url, body string, into any) bool {
	began := time.Now()
	status, answer, err := call(context.Background(), method, url, body)
	if err == nil && status != want {
		err = fmt.Errorf("%d: %s", status, answer)
	}
	if err == nil && into != nil {
		err = json.Unmarshal([]byte(answer), into)
	}
	c.books.Enter(time.Now(), kind, time.Since(began), err)
	return err == nil
}

// after waits until so many more requests were sent.
func (c *crowd) after(more int) *crowd {
	c.t.Helper()
	enough := c.books.Sent() + more
	require.Eventually(c.t, func() bool { return c.books.Sent() >= enough }, 20*time.Second, 5*time.Millisecond)
	return c
}

// disperse stops it and sums up.
func (c *crowd) disperse() ledger.Summary {
	c.cancel()
	c.done.Wait()
	return c.books.Close(time.Now(), len(c.made))
}
