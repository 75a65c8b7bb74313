// A Triton backend that stands in for TensorRT, TensorFlow or ONNX Runtime on machines without a GPU. It classifies images by a
// hash of sampled values (the same image gets the same class in any batch) and takes the time that the model's parameters say,
// with the names and the meaning that local-triton gives them:
//   simulated_host_ms_per_image   per image, on the instance that executes the batch; reported as compute_input
//   simulated_gpu_ms_per_batch    per batch, and
//   simulated_gpu_ms_per_image    per image, on the device; reported as compute_infer together with the wait for the device
//   standin_own_device            "1": every instance has a device of its own; default: one device for all, as on one GPU
// Absent parameters are 0. Build: gcc -O2 -fPIC -shared -o libtriton_NAME.so stand_in.c -lpthread
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "triton_abi.h"

#define SAMPLES 64

// Time is planned, so that what the machine adds (late wake-ups, sending the answers) neither adds up nor lowers the capacity: an
// execution that was waiting starts when the one before it should have ended.
typedef struct {
  pthread_mutex_t mutex;
  uint64_t free_at_ns;
} Device;

typedef struct {
  Device own_device;
  // Planned end of the last execution, and when it really returned.
  uint64_t planned_end_ns, returned_ns;
} Instance;

// Triton calls a free instance again within this time when a batch is waiting for it.
#define WAITING_NS 1000000u

typedef struct {
  double host_ns_per_image, gpu_ns_per_batch, gpu_ns_per_image;
  bool own_device, batches;
  int64_t classes;
} Model;

static Device shared_device = {PTHREAD_MUTEX_INITIALIZER, 0};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t at_ns) {
  struct timespec t = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
  while (at_ns > now_ns()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

// Reserves the device from `ready_ns` on, first come, first served. Returns the planned end.
static uint64_t reserve(Device* device, uint64_t ready_ns, uint64_t duration_ns) {
  pthread_mutex_lock(&device->mutex);
  uint64_t start = device->free_at_ns > ready_ns ? device->free_at_ns : ready_ns;
  uint64_t end = device->free_at_ns = start + duration_ns;
  pthread_mutex_unlock(&device->mutex);
  return end;
}

// The text behind `key`, or NULL. Triton serializes a configuration without spaces.
static const char* after(const char* json, const char* key) {
  const char* at = json == NULL ? NULL : strstr(json, key);
  return at == NULL ? NULL : at + strlen(key);
}

static double parameter(const char* json, const char* name) {
  char key[128];
  snprintf(key, sizeof key, "\"%s\":{\"string_value\":\"", name);
  const char* value = after(json, key);
  return value == NULL ? 0 : atof(value);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* triton_model) {
  TRITONSERVER_Message* message;
  const char* base;
  size_t bytes;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelConfig(triton_model, 1, &message);
  if (error != NULL) return error;
  if ((error = TRITONSERVER_MessageSerializeToJson(message, &base, &bytes)) != NULL) return error;
  char* json = strndup(base, bytes);
  TRITONSERVER_MessageDelete(message);
  const char* batch = after(json, "\"max_batch_size\":");
  const char* classes = after(after(json, "\"output\":["), "\"dims\":[");
  Model* model = calloc(1, sizeof *model);
  model->host_ns_per_image = parameter(json, "simulated_host_ms_per_image") * 1e6;
  model->gpu_ns_per_batch = parameter(json, "simulated_gpu_ms_per_batch") * 1e6;
  model->gpu_ns_per_image = parameter(json, "simulated_gpu_ms_per_image") * 1e6;
  model->own_device = parameter(json, "standin_own_device") != 0;
  model->batches = batch != NULL && atoll(batch) > 0;
  model->classes = classes == NULL ? 0 : atoll(classes);
  free(json);
  if (model->classes < 1) {
    free(model);
    return TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, "the stand-in backend needs an output whose dims are its number of classes");
  }
  return TRITONBACKEND_ModelSetState(triton_model, model);
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* triton_model) {
  void* model;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelState(triton_model, &model);
  if (error == NULL) free(model);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  Instance* state = calloc(1, sizeof *state);
  pthread_mutex_init(&state->own_device.mutex, NULL);
  return TRITONBACKEND_ModelInstanceSetState(instance, state);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  void* state;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceState(instance, &state);
  if (error == NULL) free(state);
  return error;
}

// One request of the batch.
typedef struct {
  TRITONBACKEND_Request* request;
  TRITONBACKEND_Response* response;
  TRITONBACKEND_Input* input;
  TRITONSERVER_Error* error;
  uint64_t bytes;
  uint32_t buffers;
  int64_t images;
} Job;

static TRITONSERVER_Error* read_input(Job* job, const Model* model) {
  const int64_t* shape;
  uint32_t dims;
  TRITONSERVER_Error* error = TRITONBACKEND_RequestInputByIndex(job->request, 0, &job->input);
  if (error != NULL) return error;
  error = TRITONBACKEND_InputProperties(job->input, NULL, NULL, &shape, &dims, &job->bytes, &job->buffers);
  job->images = error != NULL || !model->batches || dims == 0 ? 1 : shape[0];
  return error;
}

// Four bytes of the input, which may lie in several buffers.
static uint32_t word_at(const Job* job, uint64_t offset) {
  for (uint32_t index = 0; index < job->buffers; index++) {
    const void* buffer;
    uint64_t bytes;
    int memory_type = MEMORY_CPU;
    int64_t memory_id = 0;
    TRITONSERVER_Error* error = TRITONBACKEND_InputBuffer(job->input, index, &buffer, &bytes, &memory_type, &memory_id);
    if (error != NULL) {
      TRITONSERVER_ErrorDelete(error);
      return 0;
    }
    if (offset < bytes) {
      uint32_t word = 0;
      memcpy(&word, (const char*)buffer + offset, bytes - offset < 4 ? bytes - offset : 4);
      return word;
    }
    offset -= bytes;
  }
  return 0;
}

static uint32_t hash_image(const Job* job, int64_t image) {
  uint64_t image_bytes = job->bytes / (uint64_t)job->images;
  uint64_t words = image_bytes / 4;
  uint32_t hash = 2166136261u;
  // A step that has no factor in common with rows, columns and channels, so that the samples lie all over the image.
  for (uint64_t i = 1; i <= SAMPLES && words > 0; i++) {
    uint64_t word = (i * 2654435761u) % words;
    hash = (hash ^ word_at(job, (uint64_t)image * image_bytes + word * 4)) * 16777619u;
    hash ^= hash >> 15;
  }
  return hash;
}

// One score in (0.5, 1) for the image's class; the rest is spread evenly.
static void classify(const Job* job, const Model* model, float* scores) {
  for (int64_t image = 0; image < job->images; image++) {
    uint32_t hash = hash_image(job, image);
    float best = 0.5f + (float)(hash >> 8 & 0xffff) / 65536.0f * 0.49f;
    float rest = model->classes == 1 ? 0 : (1 - best) / (float)(model->classes - 1);
    float* row = scores + image * model->classes;
    for (int64_t k = 0; k < model->classes; k++) row[k] = rest;
    row[hash % (uint32_t)model->classes] = best;
  }
}

static TRITONSERVER_Error* answer(Job* job, const Model* model) {
  const char* name;
  TRITONBACKEND_Output* output;
  void* scores;
  int memory_type = MEMORY_CPU;
  int64_t memory_id = 0, shape[2] = {job->images, model->classes};
  uint64_t bytes = (uint64_t)(job->images * model->classes) * sizeof(float);
  TRITONSERVER_Error* error = TRITONBACKEND_RequestOutputName(job->request, 0, &name);
  if (error != NULL) return error;
  const int64_t* dims = model->batches ? shape : shape + 1;
  error = TRITONBACKEND_ResponseOutput(job->response, &output, name, TYPE_FP32, dims, model->batches ? 2 : 1);
  if (error != NULL) return error;
  if ((error = TRITONBACKEND_OutputBuffer(output, &scores, bytes, &memory_type, &memory_id)) != NULL) return error;
  classify(job, model, scores);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, uint32_t count) {
  uint64_t called = now_ns();
  TRITONBACKEND_Model* triton_model;
  Model* model;
  Instance* state;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceModel(instance, &triton_model);
  if (error == NULL) error = TRITONBACKEND_ModelState(triton_model, (void**)&model);
  if (error == NULL) error = TRITONBACKEND_ModelInstanceState(instance, (void**)&state);
  if (error != NULL) return error;
  bool was_waiting = called - state->returned_ns < WAITING_NS;
  uint64_t exec_start = was_waiting ? state->planned_end_ns : called;

  Job* jobs = calloc(count, sizeof *jobs);
  int64_t images = 0;
  for (uint32_t i = 0; i < count; i++) {
    jobs[i].request = requests[i];
    jobs[i].error = TRITONBACKEND_ResponseNew(&jobs[i].response, requests[i]);
    if (jobs[i].error == NULL) jobs[i].error = read_input(&jobs[i], model);
    if (jobs[i].error == NULL) jobs[i].error = answer(&jobs[i], model);
    images += jobs[i].images;
  }
  uint64_t compute_start = exec_start + (uint64_t)(model->host_ns_per_image * (double)images);
  sleep_until(compute_start);
  uint64_t gpu_ns = (uint64_t)(model->gpu_ns_per_batch + model->gpu_ns_per_image * (double)images);
  uint64_t compute_end = reserve(model->own_device ? &state->own_device : &shared_device, compute_start, gpu_ns);
  sleep_until(compute_end);

  for (uint32_t i = 0; i < count; i++) {
    if (jobs[i].response == NULL) continue;
    error = TRITONBACKEND_ResponseSend(jobs[i].response, RESPONSE_COMPLETE_FINAL, jobs[i].error);
    if (error != NULL) TRITONSERVER_ErrorDelete(error);
  }
  // Reported from when it was called: a request may have come between the planned start and the call, and Triton takes the time in the
  // queue for an unsigned number. The lengths stay the planned ones.
  uint64_t shift = called - exec_start;
  exec_start += shift, compute_start += shift, compute_end += shift;
  uint64_t exec_end = now_ns() + shift;
  for (uint32_t i = 0; i < count; i++) {
    TRITONBACKEND_ModelInstanceReportStatistics(
        instance, requests[i], jobs[i].error == NULL, exec_start, compute_start, compute_end, exec_end);
    TRITONBACKEND_RequestRelease(requests[i], REQUEST_RELEASE_ALL);
    if (jobs[i].error != NULL) TRITONSERVER_ErrorDelete(jobs[i].error);
  }
  TRITONBACKEND_ModelInstanceReportBatchStatistics(
      instance, (uint64_t)images, exec_start, compute_start, compute_end, exec_end);
  free(jobs);
  state->planned_end_ns = compute_end - shift;
  state->returned_ns = now_ns();
  return NULL;
}
