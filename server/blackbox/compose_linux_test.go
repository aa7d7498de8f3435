package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"codehand/server/replaytest"
)

// A composed is what a compose file says of a service, as far as it is looked at here.
type composed struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     []string
	Environment map[string]string
	Volumes     []string
	Networks    []string
	Ports       []string
	DependsOn   []string `yaml:"depends_on"`
	SecurityOpt []string `yaml:"security_opt"`
}

// TestComposeNodes: what the compose file of several machines names is there, each machine has a name of its own, and
// codehand takes their settings. It is read as YAML, since Docker is no part of the tests.
func TestComposeNodes(t *testing.T) {
	t.Parallel()
	var file struct {
		Services          map[string]composed
		Networks, Volumes map[string]any
	}
	must(t, yaml.UnmarshalWithOptions([]byte(shipped(t, "compose/compose.yaml")), &file, yaml.AllowDuplicateMapKey()))
	const dir = "../../packaging/compose"
	proxy, conf := shipped(t, "compose/Caddyfile"), shipped(t, "compose/config.toml")
	names := map[string]bool{}
	for name, s := range file.Services {
		for _, other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
		for _, network := range s.Networks {
			if _, ok := file.Networks[network]; !ok {
				t.Errorf("%s is in the network %s, which is none", name, network)
			}
		}
		if len(s.Networks) == 0 {
			t.Errorf("%s is in no network", name)
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			_, known := file.Volumes[from]
			_, err := os.Stat(filepath.Join(dir, from))
			made := slices.Contains([]string{"./volume", "./tokens"}, from) // by the commands at the top of the file
			if !known && !made && (err != nil || !strings.HasPrefix(from, "./")) {
				t.Errorf("%s mounts %s: there is no such volume or file", name, volume)
			}
		}
		for _, option := range s.SecurityOpt {
			if profile, ok := strings.CutPrefix(option, "seccomp="); ok {
				if _, err := os.Stat(filepath.Join(dir, profile)); err != nil {
					t.Error(err)
				}
			}
		}
		if s.Image != "codehand" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Error(err)
		}
		node := s.Environment["CODEHAND_CLUSTER_NODE"]
		if node == "" || names[node] {
			t.Errorf("the node of %s is %q", name, node)
		}
		names[node] = true
		if !strings.Contains(proxy, " "+name+":7433") {
			t.Errorf("the proxy does not know %s", name)
		}
		if slices.Contains(file.Services["proxy"].Networks, "inside") || !slices.Contains(s.Networks, "inside") {
			t.Errorf("who is in the network of NATS: the proxy has %q, %s %q", file.Services["proxy"].Networks, name, s.Networks)
		}
		composedNode(t, name, s, conf)
	}
	if len(names) != 2 {
		t.Errorf("there are %d machines", len(names))
	}
}

// composedNode lets codehand look at the settings of a service: it must get as far as NATS, which is not there.
func composedNode(t *testing.T, name string, s composed, conf string) {
	d := deploy(t)
	here := strings.NewReplacer("/srv/volume", filepath.Join(d.home, "volume"), "/etc/codehand", d.home, "nats://nats:4222", "nats://127.0.0.1:1",
		"0.0.0.0:7433", "127.0.0.1:0")
	must(t, os.MkdirAll(filepath.Join(d.home, "volume", "ws"), 0o700))
	must(t, os.MkdirAll(filepath.Join(d.home, "volume", "shared"), 0o700))
	replaytest.WriteFile(t, filepath.Join(d.home, "config.toml"), []byte(here.Replace(conf)))
	args := []string{"doctor", "--cluster"}
	for _, a := range s.Command[1:] {
		args = append(args, here.Replace(a))
	}
	if s.Command[0] != "serve" || len(args) != 3 {
		t.Errorf("%s is started with %q", name, s.Command)
	}
	cmd := d.codehand(args...)
	cmd.Env = append(cmd.Env, "CODEHAND_HTTP_DATA_DIR="+filepath.Join(d.home, name))
	for key, value := range s.Environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !regexp.MustCompile(`(?m)^FAIL  store .*not reachable`).Match(out) {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// TestComposeNATS: nats-server takes the file that the compose file gives it.
func TestComposeNATS(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no nats-server in PATH; .ci/nats/build DIR makes one")
		}
		t.Skip("there is no nats-server in PATH; .ci/nats/build DIR makes one")
	}
	if out, err := exec.Command(program, "-t", "-c", "../../packaging/compose/nats.conf").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
