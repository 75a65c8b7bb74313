/** A self-signed certificate made in the test itself: no key lies in the repository, nothing expires. */
import { generateKeyPairSync, sign } from "node:crypto";

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length =
    content.length < 128
      ? Buffer.from([content.length])
      : Buffer.from([0x82, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, content]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const oid = (...bytes: number[]): Buffer => der(0x06, Buffer.from(bytes));
const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const octets = (content: Buffer): Buffer => der(0x04, content);
const bits = (content: Buffer): Buffer => der(0x03, Buffer.from([0]), content);

/** Certificate and key (PEM) of a server that is called `name`; it is its own authority. */
export function selfSigned(name: string): { readonly certPem: string; readonly keyPem: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const commonName = sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(name)))));
  const validity = sequence(der(0x17, Buffer.from("200101000000Z")), der(0x17, Buffer.from("491231235959Z")));
  const alternativeNames = sequence(oid(0x55, 0x1d, 0x11), octets(sequence(der(0x82, Buffer.from(name)))));
  const isAuthority = sequence(oid(0x55, 0x1d, 0x13), octets(sequence(der(0x01, Buffer.from([0xff])))));
  const body = sequence(
    der(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    commonName,
    validity,
    commonName,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(isAuthority, alternativeNames)),
  );
  const certificate = sequence(body, ecdsaWithSha256, bits(sign("sha256", body, privateKey)));
  const lines = certificate.toString("base64").match(/.{1,64}/g)!;
  return {
    certPem: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
