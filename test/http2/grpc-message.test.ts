import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeGrpcMessage, encodeGrpcMessage } from "../../http2/grpc-message";

it("survives the wire, whatever the text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const encoded = encodeGrpcMessage(text);
      expect(encoded).toMatch(/^[ -~]*$/);
      expect(decodeGrpcMessage(encoded)).toBe(Buffer.from(text).toString());
    }),
  );
});

it("encodes what is not printable ASCII, and the percent sign", () => {
  expect(encodeGrpcMessage("100 % größer\n")).toBe("100 %25 gr%C3%B6%C3%9Fer%0A");
});

it("leaves broken escapes as they are", () => {
  expect(decodeGrpcMessage("50% off, 5%zz, %e4, %")).toBe("50% off, 5%zz, \ufffd, %");
  expect(decodeGrpcMessage("%c3%b6")).toBe("ö");
});
