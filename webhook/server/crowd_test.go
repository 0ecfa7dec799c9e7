package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// room is a crowd of three places, and how often somebody made room.
func room(t *testing.T) (c *crowd, pushed *int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	pushed = new(int)
	c = newCrowd(listener, 3, func() { *pushed++ })
	t.Cleanup(func() { _ = c.Listener.Close() })
	return c, pushed
}

// enter is a connection from an address of this machine: what its owner holds,
// and what the crowd does.
func enter(t *testing.T, c *crowd, from string) (outside net.Conn, inside *guest) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	outside, err := dialer.Dial("tcp", c.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = outside.Close() })
	accepted, err := c.Accept()
	require.NoError(t, err)
	return outside, accepted.(*guest)
}

func gone(t *testing.T, outside net.Conn) bool {
	t.Helper()
	require.NoError(t, outside.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := outside.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func TestWhoHoldsTheMostMakesRoomWithTheQuietest(t *testing.T) {
	c, pushed := room(t)
	apiServer, _ := enter(t, c, "127.0.0.1")
	first, firstInside := enter(t, c, "127.0.0.2")
	second, _ := enter(t, c, "127.0.0.2")
	assert.Zero(t, *pushed)
	c.follow(firstInside, http.StateIdle) // it has just been served

	third, _ := enter(t, c, "127.0.0.2")
	assert.Equal(t, 1, *pushed)
	assert.True(t, gone(t, second), "the quietest of those that hold the most")
	assert.False(t, gone(t, first))
	assert.False(t, gone(t, third))
	assert.False(t, gone(t, apiServer), "an older connection of somebody modest")
	assert.Equal(t, 3, c.held())
}

func TestAPlaceGivenBackIsFree(t *testing.T) {
	c, pushed := room(t)
	for range 20 {
		_, inside := enter(t, c, "127.0.0.1")
		require.NoError(t, inside.Close())
	}
	assert.Zero(t, *pushed)
	assert.Zero(t, c.held())
}

func TestNobodyIsPushedOutWhileServed(t *testing.T) {
	c, pushed := room(t)
	var inside []*guest
	for range 3 {
		_, g := enter(t, c, "127.0.0.1")
		c.follow(g, http.StateActive)
		inside = append(inside, g)
	}
	entered := make(chan error, 1)
	waiting, err := net.Dial("tcp", c.Addr().String())
	require.NoError(t, err)
	defer func() { _ = waiting.Close() }()
	go func() {
		_, err := c.Accept()
		entered <- err
	}()
	select {
	case <-entered:
		t.Fatal("a fourth was let in")
	case <-time.After(patience / 4):
	}
	require.NoError(t, inside[1].Close())
	require.NoError(t, <-entered)
	assert.Zero(t, *pushed)
}

func TestWhoHoldsLittleIsLeftAloneWhileTheOthersAreServed(t *testing.T) {
	c, pushed := room(t)
	apiServer, _ := enter(t, c, "127.0.0.1")
	for range 2 {
		_, g := enter(t, c, "127.0.0.2")
		c.follow(g, http.StateActive)
	}
	enter(t, c, "127.0.0.2")
	assert.Equal(t, 1, *pushed)
	assert.False(t, gone(t, apiServer))
}

func TestWhoIsServedWithoutEndMakesRoomInTheEnd(t *testing.T) {
	c, pushed := room(t)
	var outside []net.Conn
	for range 3 {
		o, g := enter(t, c, "127.0.0.1")
		c.follow(g, http.StateActive)
		outside = append(outside, o)
	}
	enter(t, c, "127.0.0.1")
	assert.Equal(t, 1, *pushed)
	assert.True(t, gone(t, outside[0]))
}
