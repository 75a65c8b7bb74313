/**
 * Preloaded into a load worker, which then finds what it would find in its pod: connections to the addresses of kwok's pods, which lead
 * nowhere, go to a port of this machine, and the container's /app is this checkout.
 */
const fs = require("node:fs/promises");
const { Socket } = require("node:net");

const { addresses, port, checkout } = JSON.parse(process.env.AS_IN_POD);

const { connect } = Socket.prototype;
Socket.prototype.connect = function (...words) {
  // net.connect hands over its arguments in one list: options, callback.
  const options = Array.isArray(words[0]) ? words[0][0] : words[0];
  if (typeof options === "object" && String(options.host).startsWith(addresses)) {
    options.host = "127.0.0.1";
    options.port = port;
  }
  return connect.apply(this, words);
};

const here = (path) => (typeof path === "string" ? path.replace(/^\/app\//, `${checkout}/`) : path);
for (const [name, call] of Object.entries(fs))
  if (typeof call === "function") fs[name] = (path, ...rest) => call.call(fs, here(path), ...rest);
const file = require.resolve("sharp", { paths: [checkout] });
const sharp = require(file);
require.cache[file].exports = Object.assign((input, ...rest) => sharp(here(input), ...rest), sharp);
