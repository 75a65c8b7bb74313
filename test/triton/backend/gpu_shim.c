// Preloaded into tritonserver in tests (LD_PRELOAD). Two jobs:
// 1. On a machine without a GPU it announces STANDIN_GPUS devices (default 1) that look like NVIDIA T4s, so that models with
//    KIND_GPU instances load. Their memory is main memory; no kernel can run. NVML and DCGM are not stood in for: the nv_gpu_*
//    metrics stay absent, as on a real server without a GPU.
// 2. The server ends when the process that started it does, so that a killed test run leaves no server behind.
// Build: gcc -O2 -fPIC -shared -o libgpu_shim.so gpu_shim.c
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

// cudaError_t
enum { SUCCESS = 0, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101 };

// Memory of a T4 as nvidia-smi reports it: 15109 MiB.
#define MEMORY_BYTES ((size_t)15109 * 1024 * 1024)

__attribute__((constructor)) static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

static __thread int current = 0;

static int devices(void) {
  const char* text = getenv("STANDIN_GPUS");
  return text == NULL ? 1 : atoi(text);
}

// Beginning of cudaDeviceProp of CUDA 12 (driver_types.h), up to the compute capability; the caller's is larger.
typedef struct {
  char name[256], uuid[16], luid[8];
  unsigned luid_mask;
  size_t total_memory, shared_memory_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int threads_per_block, threads_dim[3], grid_size[3], clock_khz;
  size_t constant_memory;
  int major, minor;
} Properties;

int cudaGetDeviceCount(int* count) { return *count = devices(), SUCCESS; }
int cudaGetDevice(int* device) { return *device = current, SUCCESS; }
int cudaSetDevice(int device) {
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  return current = device, SUCCESS;
}
int cudaGetDeviceProperties_v2(Properties* properties, int device) {
  if (device < 0 || device >= devices()) return INVALID_DEVICE;
  memset(properties, 0, sizeof *properties);
  strcpy(properties->name, "Tesla T4");
  properties->total_memory = MEMORY_BYTES;
  properties->warp_size = 32;
  properties->major = 7;
  properties->minor = 5;
  return SUCCESS;
}
int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (length < 13 || device < 0 || device > 7) return INVALID_DEVICE;
  strcpy(text, "0000:00:04.0");
  text[9] += (char)device;
  return SUCCESS;
}
int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) { return *free_bytes = *total_bytes = MEMORY_BYTES, SUCCESS; }
int cudaMalloc(void** memory, size_t bytes) { return (*memory = malloc(bytes)) != NULL ? SUCCESS : OUT_OF_MEMORY; }
int cudaFree(void* memory) { return free(memory), SUCCESS; }
int cudaHostAlloc(void** memory, size_t bytes, unsigned flags) { return (void)flags, cudaMalloc(memory, bytes); }
int cudaFreeHost(void* memory) { return free(memory), SUCCESS; }
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) { return (void)kind, memcpy(to, from, bytes), SUCCESS; }
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  return (void)stream, cudaMemcpy(to, from, bytes, kind);
}
int cudaDeviceCanAccessPeer(int* can, int device, int peer) { return (void)device, (void)peer, *can = 0, SUCCESS; }
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != NULL) *least = 0;
  if (greatest != NULL) *greatest = 0;
  return SUCCESS;
}
int cudaStreamCreate(void** stream) { return *stream = NULL, SUCCESS; }
int cudaStreamDestroy(void* stream) { return (void)stream, SUCCESS; }
int cudaStreamSynchronize(void* stream) { return (void)stream, SUCCESS; }
