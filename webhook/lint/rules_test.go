package lint

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACRDWithARuleThatIsNotToldHereIsRefusedAsAWhole(t *testing.T) {
	const crd = `
spec:
  names: {kind: Glance}
  versions:
    - schema:
        openAPIV3Schema:
          properties:
            spec:
              items:
                additionalProperties:
                  x-kubernetes-validations:
                    - {rule: "self > 7", message: too small}
`
	_, _, err := readSchema([]byte(crd))
	assert.ErrorContains(t, err, `rule "self > 7" is not known to lint`)
}
