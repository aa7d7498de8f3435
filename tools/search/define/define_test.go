package define

import (
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ext, line, want string }{
		{".go", "func NewReader(rd io.Reader) *Reader {", "NewReader"},
		{".go", "func (b *Reader) Reset(r io.Reader) {", "Reset"},
		{".go", "type Reader struct {", "Reader"},
		{".go", "func Map[K any](m K) {", "Map"},
		{".go", "var ErrX = 1", "ErrX"},
		{".go", "\tvar n int", ""},
		{".go", "\treturn NewReader(x)", ""},
		{".go", "// func NewReader", ""},
		{".go", "func (b", ""},
		{".py", "    async def handle(self):", "handle"},
		{".py", "class A(B):", "A"},
		{".py", "LIMIT = 3", "LIMIT"},
		{".py", "LIMIT: int = 3", "LIMIT"},
		{".py", "    limit = 3", ""},
		{".py", "x == 3", ""},
		{".py", "define(x)", ""},
		{".ts", "export default async function load(x) {", "load"},
		{".ts", "export const limit = 3", "limit"},
		{".ts", "  const limit = 3", ""},
		{".ts", "  private async handle(x: Y): Z {", "handle"},
		{".ts", "  if (x) {", ""},
		{".ts", "export interface Props {", "Props"},
		{".ts", "describe(\"x\", () => {", ""},
		{".ts", "  load(x);", ""},
		{".ts", "  } else if (x) {", ""},
		{".ts", "x.load(y) {", ""},
		{".rs", "pub(crate) async fn load<T>(x: T) {", "load"},
		{".rs", "impl Load for X {", ""},
		{".rs", "macro_rules! vec {", ""},
		{".rs", "const fn load() {", "load"},
		{".rs", "pub struct Load;", "Load"},
		{".rs", "const LOAD: u8 = 1;", "LOAD"},
		{".c", "#define LIMIT 3", "LIMIT"},
		{".c", "struct inode {", "inode"},
		{".c", "struct inode *get(void)", "get"},
		{".c", "struct inode *i;", ""},
		{".c", "static int load(struct inode *i)", "load"},
		{".c", "int load(int);", ""},
		{".c", "\tint load(x)", ""},
		{".c", "return load(x)", ""},
		{".cc", "void Foo::load(int x) {", "load"},
		{".c", "load(x)", ""},
		{".c", "x = load(y)", ""},
		{".java", "    public static List<String> load(int x) {", "load"},
		{".java", "    load(x);", ""},
		{".java", "    return load(x);", ""},
		{".java", "public final class Loader<T> {", "Loader"},
		{".java", "    void load() {", "load"},
		{".java", "    x.load(y);", ""},
		{".java", "    int n = load(y);", ""},
		{".java", "  } else if (load(x)) {", ""},
		{".kt", "private suspend fun load(x: Int)", "load"},
		{".swift", "public func load(x: Int) {", "load"},
		{".kt", "data class A(val x: Int)", "A"},
		{".rb", "  def load", "load"},
		{".php", "    public function load($x)", "load"},
		{".sh", "load() {", "load"},
		{".sh", "load x", ""},
		{".sh", "function load {", "load"},
		{".lua", "local function load(x)", "load"},
		{".sql", "CREATE TABLE IF NOT EXISTS users (", "users"},
		{".proto", "message User {", "User"},
		{".txt", "func x()", ""},
		{"", "func x()", ""},
		{".go", "", ""},
		{".go", "func", ""},
		{".go", "func ", ""},
	} {
		from, to := Name(c.ext, []byte(c.line))
		if name := c.line[from:to]; name != c.want {
			t.Errorf("%s: %q defines %q, want %q", c.ext, c.line, name, c.want)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add(uint8(0), "func (a *b) c(d) {")
	f.Add(uint8(4), "static int x(void)")
	f.Fuzz(func(t *testing.T, n uint8, line string) {
		for _, ext := range []string{".go", ".py", ".ts", ".rs", ".c", ".java", ".sql", ".sh"}[n%8:] {
			if from, to := Name(ext, []byte(line)); from < 0 || to < from || to > len(line) || to > 0 && from == to {
				t.Fatalf("%s %q: %d to %d", ext, line, from, to)
			}
		}
	})
}
