package free

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAddressIsNotOneThatTheKernelGivesAway(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	require.NoError(t, err)
	first, err := strconv.Atoi(strings.Fields(string(text))[0])
	require.NoError(t, err)
	assert.LessOrEqual(t, highest, first)

	address := Address(t)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	assert.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	assert.Less(t, number, first)
}
