{
  description = "Tools of a coding agent for any MCP client, with undo";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      archives = {
        x86_64-linux = { url = "{{url "linux_amd64"}}"; hash = "{{sri "linux_amd64"}}"; };
        aarch64-linux = { url = "{{url "linux_arm64"}}"; hash = "{{sri "linux_arm64"}}"; };
        x86_64-darwin = { url = "{{url "darwin_amd64"}}"; hash = "{{sri "darwin_amd64"}}"; };
        aarch64-darwin = { url = "{{url "darwin_arm64"}}"; hash = "{{sri "darwin_arm64"}}"; };
      };
    in {
      packages = builtins.mapAttrs (system: archive:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          codehand = pkgs.stdenvNoCC.mkDerivation {
            pname = "codehand";
            version = "{{.Version}}";
            src = pkgs.fetchurl archive;
            sourceRoot = ".";
            nativeBuildInputs = [ pkgs.installShellFiles ];
            dontConfigure = true;
            dontBuild = true;
            installPhase = ''
              install -Dm755 codehand $out/bin/codehand
              installManPage man/*
              installShellCompletion --name codehand.bash completions/codehand.bash
              installShellCompletion --name codehand.fish completions/codehand.fish
              installShellCompletion --name _codehand completions/codehand.zsh
            '';
            meta = {
              description = "Tools of a coding agent for any MCP client, with undo";
              homepage = "{{.Repository}}";
              license = pkgs.lib.licenses.mit;
              mainProgram = "codehand";
            };
          };
        in { default = codehand; inherit codehand; }) archives;
    };
}
