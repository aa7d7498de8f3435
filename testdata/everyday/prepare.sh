#!/usr/bin/env bash
# prepare.sh STACK makes a small project of a stack in the current directory, which is empty, as somebody would find it
# on a Monday. Commands of testdata/everyday/commands.tsv work in it. Beside it, in ../, lies what the project comes from.
set -euo pipefail
commit() {
	git init -q -b main
	git add -A
	git commit -q -m "first"
}
case $1 in
git)
	printf 'one\n' >app.txt
	printf 'made/\n' >.gitignore
	commit
	git clone -q --bare . ../origin.git
	git remote add origin ../origin.git
	git fetch -q origin
	git branch -q -u origin/main
	printf -- '--- /dev/null\n+++ b/patched.txt\n@@ -0,0 +1 @@\n+patched\n' >fix.patch
	;;
go)
	printf 'module example.com/demo\n\ngo 1.21\n' >go.mod
	printf 'package main\n\nimport "fmt"\n\n//go:generate echo generated\n\nfunc add(a, b int) int { return a + b }\n\nfunc main() { fmt.Println(add(1, 2)) }\n' >main.go
	printf 'package main\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc BenchmarkAdd(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tadd(1, 2)\n\t}\n}\n' >main_test.go
	commit
	;;
node | pnpm | yarn | berry)
	printf '{"name":"demo","version":"1.0.0","main":"index.js","scripts":{"test":"node --test","build":"node index.js >built.txt"},"dependencies":{"is-odd":"3.0.1"}}\n' >package.json
	printf 'const odd = n => n %% 2 === 1;\nmodule.exports = { odd };\n' >index.js
	printf 'const { test } = require("node:test");\ntest("odd", () => { if (!require("./index.js").odd(3)) throw new Error(); });\n' >index.test.js
	printf 'node_modules/\n' >.gitignore
	if [ "$1" = berry ]; then
		printf 'enableTelemetry: false\n' >.yarnrc.yml
		touch yarn.lock
	fi
	commit
	;;
mixed)
	bash "$0" go
	printf '{"name":"demo","version":"1.0.0","main":"index.js","scripts":{"test":"node --test","start":"node index.js"}}\n' >package.json
	printf 'const odd = n => n %% 2 === 1;\nmodule.exports = { odd };\n' >index.js
	printf 'const { test } = require("node:test");\ntest("odd", () => { if (!require("./index.js").odd(3)) throw new Error(); });\n' >index.test.js
	printf 'def add(a, b):\n    return a + b\n\n\nif __name__ == "__main__":\n    print(add(1, 2))\n' >app.py
	printf 'import unittest\n\nfrom app import add\n\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n' >test_app.py
	printf '{"items": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}\n' >data.json
	printf '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n' >hello.c
	printf 'test:\n\t@echo tested\nbuild:\n\techo built >made.txt\n' >Makefile
	printf '#!/bin/sh\necho built >made.txt\n' >build.sh
	printf -- '--- main.go\n+++ main.go\n@@ -1 +1 @@\n-package main\n+package other\n' >fix.patch
	printf '.venv/\n__pycache__/\nnode_modules/\n' >.gitignore
	tar -cf a.tar main.go
	git remote add origin https://git.example.com/demo.git
	git add -A
	git commit -q -m second
	;;
python | poetry)
	printf 'def add(a, b):\n    return a + b\n\n\nif __name__ == "__main__":\n    print(add(1, 2))\n' >app.py
	printf 'import unittest\n\nfrom app import add\n\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n' >test_app.py
	printf '{"n": 1}\n' >data.json
	printf '.venv/\n__pycache__/\n' >.gitignore
	printf '[tool.poetry]\nname = "demo"\nversion = "0.1.0"\ndescription = ""\nauthors = ["a <a@example.com>"]\n\n[tool.poetry.dependencies]\npython = ">=3.9"\n' >pyproject.toml
	mkdir wheels
	python3 - <<'X'
import zipfile
with zipfile.ZipFile("wheels/tiny-1.0-py3-none-any.whl", "w") as z:
    z.writestr("tiny.py", "answer = 42\n")
    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
X
	commit
	;;
rust)
	printf '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
	mkdir src
	printf 'fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\nfn main() {\n    println!("{}", add(1, 2));\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n' >src/main.rs
	printf 'target/\n' >.gitignore
	commit
	;;
java)
	printf 'public class Main {\n    public static void main(String[] args) {\n        System.out.println("hi");\n    }\n}\n' >Main.java
	printf '<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>demo</artifactId><version>1</version></project>\n' >pom.xml
	commit
	;;
ruby)
	printf 'puts "hi"\n' >app.rb
	printf 'source "https://rubygems.org"\n' >Gemfile
	mkdir bin
	printf '#!/usr/bin/env ruby\nputs "hi"\n' >bin/demo-hi
	chmod +x bin/demo-hi
	printf 'Gem::Specification.new { |s| s.name = "demo"; s.version = "1.0"; s.summary = "d"; s.authors = ["a"]; s.files = ["bin/demo-hi"]; s.bindir = "bin"; s.executables = ["demo-hi"] }\n' >demo.gemspec
	printf 'task :default do\n  puts "done"\nend\n' >Rakefile
	commit
	;;
php)
	printf '<?php echo "hi\\n";\n' >app.php
	printf '{"name":"x/demo","description":"d","license":"MIT","require":{},"autoload":{"classmap":["app.php"]},"scripts":{"test":"php app.php"}}\n' >composer.json
	commit
	;;
c)
	printf '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n' >main.c
	printf 'all: main\nmain: main.c\n\t$(CC) -o main main.c\ntest: main\n\t./main\nclean:\n\trm -f main\n' >Makefile
	printf 'cmake_minimum_required(VERSION 3.10)\nproject(demo C)\nadd_executable(demo main.c)\nenable_testing()\nadd_test(NAME demo COMMAND demo)\n' >CMakeLists.txt
	printf 'main\nbuild*/\n' >.gitignore
	commit
	;;
docker) printf 'FROM scratch\n' >Dockerfile && commit ;;
gh)
	printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: x, image: x}]}\n' >pod.yml
	printf 'output "x" {\n  value = 1\n}\n' >main.tf
	commit
	;;
shell | web | db | edit)
	printf 'alpha 1\nbeta 2\nalpha 3\n' >a.txt
	printf 'alpha 1\nbeta 9\n' >b.txt
	printf '#!/bin/sh\necho "ran $*"\n' >run.sh
	printf 'export GREETING=hello\n' >env.sh
	printf '{"n": 1}\n' >data.json
	printf 'a: 1\n' >conf.yml
	printf 'print("generated")\n' >gen.py
	printf -- '--- a/conf.yml\n+++ b/conf.yml\n@@ -1 +1 @@\n-a: 1\n+a: 2\n' >change.patch
	commit
	printf 'noise\n' >one.log
	printf 'noise\n' >big.log
	;;
*) echo "prepare.sh: no stack $1" >&2 && exit 2 ;;
esac
