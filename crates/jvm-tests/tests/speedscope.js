// Runs speedscope's own importer outside of a browser: node speedscope.js BUNDLE FILE…
// Prints for each file its profiles as [total, name].
//
// The bundle of the npm package is a page whose last statement draws it. Without that statement, and with the importer
// told by the one call of it that has a name, what is left is the importer.
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [bundle, ...files] = process.argv.slice(2);
const page = fs.readFileSync(bundle, 'utf8');
const call = /loadFileFromBase64:\((\w+),(\w+)\)=>\{this\.loadProfile\(\(\)=>([\w$]+)\(\1,\2\)\)\}/.exec(page);
const draws = page.lastIndexOf('console.log(`speedscope v');
if (!call || draws < 0) throw new Error('this is not the bundle that this script knows');
const code = page.slice(0, draws) + `globalThis.importFile=${call[3]};})();`;

// A page that has everything and does nothing.
const nothing = new Proxy(function () {}, {
    get: (_, key) => {
        if (key === Symbol.toPrimitive) return () => '';
        if (key === Symbol.iterator) return function* () {};
        return nothing;
    },
    apply: () => nothing,
    construct: () => nothing,
    set: () => true,
});
const context = {
    console: { log() {}, warn() {}, error() {} },
    TextDecoder, TextEncoder, Uint8Array, ArrayBuffer, URL, Blob, atob, btoa, setTimeout, clearTimeout, performance, Promise,
    document: nothing, navigator: nothing, localStorage: nothing, location: nothing, history: nothing, matchMedia: nothing,
    requestAnimationFrame: nothing, addEventListener: nothing, FileReader: nothing, HTMLElement: Object,
};
context.window = context;
context.self = context;
context.globalThis = context;
vm.runInNewContext(code, context);

(async () => {
    const found = [];
    for (const file of files) {
        const bytes = fs.readFileSync(file).toString('base64');
        const group = await context.importFile(path.basename(file), bytes);
        if (!group) throw new Error(`speedscope does not know what ${file} is`);
        found.push(group.profiles.map((one) => [one.getTotalWeight(), one.getName()]));
    }
    console.log(JSON.stringify(found));
})();
