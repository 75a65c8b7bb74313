import fc from "fast-check";
import { expect, it } from "vitest";
import {
  GRPC_PREFIX_BYTES,
  grpcMessageBytes,
  withGrpcPrefix,
  writeGrpcPrefix,
} from "../../http2/grpc-prefix";

it("a flag of 0, the length in four bytes, the message: as the protocol's text has it", () => {
  expect(withGrpcPrefix(Buffer.from("abc"))).toEqual(Buffer.from([0, 0, 0, 0, 3, 0x61, 0x62, 0x63]));
  expect(withGrpcPrefix(Buffer.alloc(0))).toEqual(Buffer.alloc(GRPC_PREFIX_BYTES));
  expect(withGrpcPrefix(Buffer.alloc(602_112)).subarray(0, 5)).toEqual(Buffer.from([0, 0, 0x09, 0x30, 0x00]));
});

it("what is written anywhere is read there again, and nothing beside it is touched", () => {
  fc.assert(
    fc.property(fc.nat(20), fc.nat(0xffffffff), (at, bytes) => {
      const target = Buffer.alloc(at + GRPC_PREFIX_BYTES + 1, 0xee);
      expect(writeGrpcPrefix(target, at, bytes)).toBe(at + GRPC_PREFIX_BYTES);
      expect(grpcMessageBytes(target, at)).toBe(bytes);
      expect(target[at]).toBe(0);
      expect([...target.subarray(0, at), target.at(-1)].every((octet) => octet === 0xee)).toBe(true);
    }),
  );
});
