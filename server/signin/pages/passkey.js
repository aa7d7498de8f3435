// Asks the browser for a passkey. Without this script everything else works.
"use strict";
const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
	.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

const post = async (url, body) => {
	const answer = await fetch(url, {
		method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
	});
	const said = await answer.json();
	if (!answer.ok) throw new Error(said.error);
	return said;
};

const read = (options) => {
	options.challenge = decode(options.challenge);
	if (options.user) options.user.id = decode(options.user.id);
	for (const list of [options.allowCredentials, options.excludeCredentials]) {
		for (const one of list || []) one.id = decode(one.id);
	}
	return options;
};

const write = (credential) => {
	const said = credential.response;
	const response = { clientDataJSON: encode(said.clientDataJSON) };
	for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
		if (said[name]) response[name] = encode(said[name]);
	}
	if (said.getTransports) response.transports = said.getTransports();
	return {
		id: credential.id, rawId: encode(credential.rawId), type: credential.type, response,
		authenticatorAttachment: credential.authenticatorAttachment || undefined,
		clientExtensionResults: credential.getClientExtensionResults(),
	};
};

for (const box of document.querySelectorAll("[data-passkey]")) {
	if (!window.PublicKeyCredential) continue;
	box.hidden = false;
	const button = box.querySelector("button"), status = box.querySelector("[role=status]");
	const name = box.querySelector("input");
	button.addEventListener("click", async () => {
		const { passkey: kind, base, csrf, ask = "" } = box.dataset;
		button.disabled = true;
		status.textContent = "";
		try {
			const begun = await post(base + "passkey/begin", { csrf, kind });
			const publicKey = read(begun.publicKey);
			const credential = kind === "login" ? await navigator.credentials.get({ publicKey })
				: await navigator.credentials.create({ publicKey });
			const done = await post(base + "passkey/finish",
				{ csrf, kind, ask, name: name ? name.value : "", credential: write(credential) });
			location.assign(base + done.next);
		} catch (e) {
			status.textContent = e.name === "NotAllowedError" ? "This was cancelled, or took too long. Try again."
				: e.name === "InvalidStateError" ? "This device has a passkey for you already." : e.message;
			button.disabled = false;
		}
	});
}
