// Chromium on the pages of codehand: what the programs beside this file share.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let failed = false;

/** check runs body and says how it ended. */
export async function check(name, body) {
	try {
		await body();
		console.log(`ok ${name}`);
	} catch (e) {
		failed = true;
		console.log(`FAIL ${name}: ${String(e.stack ?? e).split('\n').slice(0, 8).join(' | ')}`);
	}
}

export async function launch() {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
		args: [
			...(process.getuid() === 0 ? ['--no-sandbox'] : []), '--disable-gpu', '--disable-dev-shm-usage',
			...(process.env.TRUSTED_KEY ? [`--ignore-certificate-errors-spki-list=${process.env.TRUSTED_KEY}`] : []),
		],
		env: { ...process.env, HOME: process.env.TMPDIR ?? '/tmp' },
	});
	return browser;
}

/**
 * client is a session of a client that cannot ask, on a server without a sign-in: rpc makes a request and returns its
 * result, tool calls a tool, and last is the id of the newest request. heard is called with all that came so far.
 */
export async function client(origin, name = 'claude-ai') {
	let session, number = 0;
	async function rpc(method, params, signal, heard = () => {}) {
		const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
		if (session) headers['Mcp-Session-Id'] = session;
		const body = { jsonrpc: '2.0', method, params };
		if (!method.startsWith('notifications/')) body.id = ++number;
		const response = await fetch(`${origin}/mcp`, { method: 'POST', headers, body: JSON.stringify(body), signal });
		session ??= response.headers.get('Mcp-Session-Id');
		let text = '';
		for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) heard(text += chunk);
		const lines = text.split('\n').map((l) => l.replace(/^data: /, '')).filter((l) => l.startsWith('{'));
		return lines.map((l) => JSON.parse(l)).at(-1)?.result;
	}
	await rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version: '0.1.0' } });
	await rpc('notifications/initialized', {});
	return { rpc, tool: (name, args) => rpc('tools/call', { name, arguments: args }), last: () => number };
}

/** finish ends the program. */
export async function finish(...closing) {
	for (const c of closing) await c.close();
	process.exit(failed ? 1 : 0);
}

/** A client's loopback: next() resolves to the next URL that a browser is sent to. */
export async function callback() {
	const waiting = [], come = [];
	const server = createServer((request, response) => {
		response.end('<!doctype html><title>done</title>done');
		if (!request.url.startsWith('/callback')) return;
		const seen = { url: new URL(request.url, 'http://127.0.0.1'), referer: request.headers.referer };
		if (waiting.length) waiting.shift()(seen);
		else come.push(seen);
	});
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	return {
		port: server.address().port,
		next: () => come.length ? Promise.resolve(come.shift()) : new Promise((done, fail) => {
			waiting.push(done);
			setTimeout(() => fail(new Error('the browser was not sent to the client')), 15_000).unref();
		}),
		close: () => server.close(),
	};
}

/**
 * open makes a browser of its own with a page in it. Whatever the page loads from elsewhere, an error of script, and what
 * the content security policy refused are kept in page.wrong.
 */
export async function open(browser, origin, options = {}) {
	const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
	const page = await context.newPage();
	page.wrong = [];
	page.on('request', (r) => {
		const url = new URL(r.url());
		if (url.origin !== origin && url.pathname !== '/callback' && url.pathname !== '/favicon.ico') page.wrong.push(`asks ${url.origin} for something`);
	});
	page.on('pageerror', (e) => page.wrong.push(`script: ${e}`));
	page.on('console', (m) => {
		if (m.type() === 'error' && !/status of (4\d\d|50[23])/.test(m.text())) page.wrong.push(`console: ${m.text()}`);
	});
	return page;
}

/** axe finds nothing to mend in the page, and it is as wide as the window. */
export async function accessible(page) {
	await page.evaluate(axeSource);
	const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
	assert.deepEqual(violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`), []);
	const wide = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
	assert(wide[0] <= wide[1], `the page is ${wide[0]} wide in a window of ${wide[1]}`);
}

/** shoot takes a picture of the whole page, if there is a directory for it. */
export async function shoot(page, dir, name) {
	if (!dir) return;
	mkdirSync(dir, { recursive: true });
	await page.screenshot({ path: join(dir, `${name}.png`), fullPage: true });
}

/**
 * tab presses Tab until what has the focus matches the selector. Each stop on the way must be visible and show that it
 * has the focus.
 */
export async function tab(page, selector) {
	for (let i = 0; i < 60; i++) {
		const at = await page.evaluate((selector) => {
			const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
			return {
				there: e.matches(selector), body: e === document.body, what: e.outerHTML.slice(0, 80),
				shown: box.width > 0 && box.height > 0 && box.left >= 0 && (style.outlineStyle !== 'none' || style.boxShadow !== 'none'),
			};
		}, selector);
		assert(at.body || at.shown, `who uses the keyboard does not see where the focus is: ${at.what}`);
		if (at.there) return;
		await page.keyboard.press('Tab');
	}
	assert.fail(`Tab does not lead to ${selector}`);
}

/** types types into the field that the page gives the focus, which a browser does after it has loaded the page. */
export async function types(page, text) {
	await page.waitForSelector('input:focus');
	await page.keyboard.type(text);
}

/**
 * comesBack opens a page that a person sees who is signed in, in a browser in which that person has signed in before.
 * Over https the browser's cookie is enough. Over plain http it proves nothing (docs/signin.md): the page must ask for
 * the password, and say why; enter enters it.
 */
export async function comesBack(page, url, shows, enter) {
	await page.goto(url);
	const secure = new URL(url).protocol === 'https:';
	assert.equal(await page.locator('input[type=password]').count(), secure ? 0 : 1, 'fields for a password');
	assert.equal(await page.locator(shows).count(), secure ? 1 : 0, shows);
	if (!secure) {
		assert.match(await page.locator('main').innerText(), /You sign in each time: over plain http/);
		await enter();
	}
	await page.waitForSelector(shows);
}

/** at moves the port of the loopback redirect of an authorization request. */
export function at(authorize, port) {
	const url = new URL(authorize);
	const redirect = new URL(url.searchParams.get('redirect_uri'));
	redirect.port = port;
	url.searchParams.set('redirect_uri', redirect);
	return url.href;
}

/** authenticator is a passkey of the browser, with a person who touches it. */
export async function authenticator(page) {
	const cdp = await page.context().newCDPSession(page);
	await cdp.send('WebAuthn.enable');
	const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
		options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
	});
	return { cdp, authenticatorId, keys: async () => (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials };
}
