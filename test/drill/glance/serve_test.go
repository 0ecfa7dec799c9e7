package main

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ask sends a request that takes its time and reports the status, 0 for a connection that was cut.
func ask(t *testing.T, address, query string) <-chan int {
	t.Helper()
	done := make(chan int, 1)
	go func() {
		status, _, err := call(t.Context(), http.MethodPost, address+"/v2/images?"+query, `{"name":"slow"}`)
		if err != nil {
			status = 0
		}
		done <- status
	}()
	return done
}

func refused(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, _, err := call(t.Context(), http.MethodGet, address+"/healthcheck", "")
		return err != nil
	}, 10*time.Second, 10*time.Millisecond, "it accepts nothing more")
}

func TestOpenRequestsAreDrainedAfterSigterm(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, api := w.serve(a)
	upload := ask(t, address, "hold=upload")
	w.says(api, "is held until the word upload")
	require.NoError(t, api.cmd.Process.Signal(syscall.SIGTERM))
	refused(t, address)
	w.sql("INSERT INTO drill_go VALUES ('upload')")
	assert.Equal(t, http.StatusCreated, <-upload)
	assert.Zero(t, w.exits(api))
	assert.Equal(t, 1, w.verify().Checked)
}

func TestAnUploadThatEndsAfterContractFails(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, api := w.serve(a)
	upload := ask(t, address, "hold=upload")
	w.says(api, "is held until the word upload")
	require.NoError(t, api.cmd.Process.Signal(syscall.SIGTERM))
	w.must(b, "expand", "migrate", "contract")
	w.sql("INSERT INTO drill_go VALUES ('upload')")
	assert.Equal(t, http.StatusInternalServerError, <-upload)
}

func TestADrainHasAnEndIfItIsGivenOne(t *testing.T) {
	w := newWorld(t).told("api_drain = 200ms")
	w.must(a, "sync")
	address, api := w.serve(a)
	upload := ask(t, address, "hold=never")
	w.says(api, "is held until the word never")
	require.NoError(t, api.cmd.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, <-upload)
	assert.Equal(t, 1, w.exits(api))
}

func TestAServerLingersOrIgnoresSigtermAsItIsTold(t *testing.T) {
	for name, option := range map[string]string{"lingers": "api_linger = 1h", "ignores it": "ignore_sigterm = api"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).told(option)
			address, api := w.serve(a)
			require.NoError(t, api.cmd.Process.Signal(syscall.SIGTERM))
			if name == "lingers" {
				w.says(api, "linger for 1h")
				refused(t, address)
			} else {
				time.Sleep(200 * time.Millisecond)
				answers(t, http.StatusOK, http.MethodGet, address+"/healthcheck", "")
			}
			select {
			case <-api.ended:
				t.Error("it ended")
			default:
			}
		})
	}
}

func TestAServerCrashesAsItIsTold(t *testing.T) {
	w := newWorld(t)
	code, out := w.told("api_fail = no such backend").end(w.told("api_fail = no such backend").program(a, "uwsgi"))
	assert.Equal(t, 1, code)
	assert.Equal(t, "ERROR: no such backend\n", out)
	_, api := w.told("api_crash_after = 100ms").serve(a)
	assert.Equal(t, 1, w.exits(api))
	assert.Contains(t, api.last.String(), "told to crash after 100ms")
}

func TestAServerIsSlowOrUnreadyAsItIsTold(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	began := time.Now()
	address, _ := w.told("api_start_delay = 200ms", "api_request_delay = 1s", "api_unready = true").serve(a)
	assert.Greater(t, time.Since(began), 200*time.Millisecond)
	began = time.Now()
	answers(t, http.StatusServiceUnavailable, http.MethodGet, address+"/healthcheck", "")
	assert.Less(t, time.Since(began), time.Second, "only the Image API is slow")
	began = time.Now()
	answers(t, http.StatusOK, http.MethodGet, address+"/v2/images?slow=100ms", "")
	assert.Greater(t, time.Since(began), 1100*time.Millisecond)
}

func TestPagesLeadThroughAllImages(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	made := map[string]bool{}
	for range 7 {
		made[create(t, address, "same")] = true
	}
	other := create(t, address, "other")
	pages := 0
	for path := "/v2/images?limit=3&name=same"; path != ""; pages++ {
		var page struct {
			Images []struct{ ID string }
			Next   string
		}
		require.NoError(t, json.Unmarshal([]byte(answers(t, http.StatusOK, http.MethodGet, address+path, "")), &page))
		for _, image := range page.Images {
			assert.True(t, made[image.ID], image.ID)
			delete(made, image.ID)
		}
		path = page.Next
	}
	assert.Empty(t, made)
	assert.Equal(t, 3, pages)
	answers(t, http.StatusNoContent, http.MethodDelete, address+"/v2/images/"+other, "")
	answers(t, http.StatusNotFound, http.MethodGet, address+"/v2/images/"+other, "")
	answers(t, http.StatusNotFound, http.MethodDelete, address+"/v2/images/"+other, "")
}

func TestABadRequestIsTheClientsFault(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	id := create(t, address, "first")
	for _, request := range [][3]string{
		{http.MethodPost, "/v2/images", "{"},
		{http.MethodPost, "/v2/images?slow=soon", "{}"},
		{http.MethodPost, "/v2/images", `{"disk_format":"a format with far too long a name"}`},
		{http.MethodGet, "/v2/images?limit=0", ""},
		{http.MethodPatch, "/v2/images/" + id, `[{"op":"add","path":"/name"}]`},
	} {
		answers(t, http.StatusBadRequest, request[0], address+request[1], request[2])
	}
	found := decode(t, answers(t, http.StatusOK, http.MethodGet, address+"/", ""))
	assert.Equal(t, a, found["release"])
}

func TestTheTrafficOfOtherTestsRunsAgainstIt(t *testing.T) {
	w := newWorld(t)
	w.must(a, "sync")
	address, _ := w.serve(a)
	traffic := filepath.Join(t.TempDir(), "traffic")
	out, err := exec.Command("go", "build", "-o", traffic, "github.com/c5c3/openstack-upgrade/test/traffic").CombinedOutput()
	require.NoError(t, err, string(out))
	code, lines := w.end(exec.Command(traffic, "--url="+address, "--rate=40", "--duration=1s"))
	assert.Zero(t, code, lines)
	assert.Positive(t, w.verify().Checked)
	assert.Contains(t, lines, `"final":true`)

	w.must(b, "sync")
	code, _ = w.end(exec.Command(traffic, "--url="+address, "--rate=40", "--duration=300ms"))
	assert.Equal(t, 1, code, "and it notices what the drill is for")
}
