class Codehand < Formula
  desc "Tools of a coding agent for any MCP client, with undo"
  homepage "{{.Repository}}"
  version "{{.Version}}"
  license "MIT"

  on_macos do
    on_arm do
      url "{{url "darwin_arm64"}}"
      sha256 "{{hex "darwin_arm64"}}"
    end
    on_intel do
      url "{{url "darwin_amd64"}}"
      sha256 "{{hex "darwin_amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{url "linux_arm64"}}"
      sha256 "{{hex "linux_arm64"}}"
    end
    on_intel do
      url "{{url "linux_amd64"}}"
      sha256 "{{hex "linux_amd64"}}"
    end
  end

  def install
    bin.install "codehand"
    man1.install Dir["man/*"]
    bash_completion.install "completions/codehand.bash" => "codehand"
    fish_completion.install "completions/codehand.fish"
    zsh_completion.install "completions/codehand.zsh" => "_codehand"
  end

  def caveats
    "Connect a client: codehand install claude-code"
  end

  test do
    assert_match "codehand #{version} ", shell_output("#{bin}/codehand --version")
    assert_match "read_file", shell_output("#{bin}/codehand tools")
  end
end
