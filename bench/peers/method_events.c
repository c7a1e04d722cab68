/*
 * A profiler as hprof's "cpu=times" was one: the JVM reports every entry and exit of a method, and this
 * agent keeps calls and times by method. Nothing of it is clever; it is here to be measured beside.
 */
#include <jvmti.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { METHODS = 1 << 17, DEPTH = 4096 };

struct method {
    _Atomic(jmethodID) id;
    atomic_ullong calls;
    atomic_ullong own_ns;
};

struct activation {
    jmethodID method;
    uint64_t began;
    uint64_t in_callees;
};

static struct method methods[METHODS];
static _Thread_local struct activation stack[DEPTH];
static _Thread_local unsigned depth;

static uint64_t clock_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static struct method *find(jmethodID id)
{
    uintptr_t slot = (uintptr_t)id >> 3;
    for (unsigned tries = 0; tries < METHODS; tries++, slot++) {
        struct method *here = &methods[slot % METHODS];
        jmethodID known = atomic_load_explicit(&here->id, memory_order_relaxed);
        if (known == NULL && atomic_compare_exchange_strong(&here->id, &known, id)) {
            return here;
        }
        if (known == id) {
            return here;
        }
    }
    return NULL;
}

static void JNICALL entered(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method)
{
    (void)jvmti, (void)jni, (void)thread;
    if (depth < DEPTH) {
        stack[depth] = (struct activation){ .method = method, .began = clock_ns() };
    }
    depth++;
}

static void JNICALL left(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jmethodID method,
                         jboolean thrown, jvalue result)
{
    (void)jvmti, (void)jni, (void)thread, (void)method, (void)thrown, (void)result;
    if (depth == 0 || --depth >= DEPTH) {
        return;
    }
    struct activation *ended = &stack[depth];
    uint64_t took = clock_ns() - ended->began;
    struct method *of = find(ended->method);
    if (of != NULL) {
        atomic_fetch_add_explicit(&of->calls, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&of->own_ns, took - ended->in_callees, memory_order_relaxed);
    }
    if (depth > 0) {
        stack[depth - 1].in_callees += took;
    }
}

static void JNICALL died(jvmtiEnv *jvmti, JNIEnv *jni)
{
    (void)jvmti, (void)jni;
    unsigned long long calls = 0, own = 0, seen = 0;
    for (unsigned i = 0; i < METHODS; i++) {
        unsigned long long n = atomic_load(&methods[i].calls);
        calls += n;
        own += atomic_load(&methods[i].own_ns);
        seen += n > 0;
    }
    fprintf(stderr, "recorded: %llu calls of %llu methods, %llu ms\n", calls, seen, own / 1000000);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)options, (void)reserved;
    jvmtiEnv *jvmti = NULL;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return JNI_ERR;
    }
    jvmtiCapabilities wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.can_generate_method_entry_events = 1;
    wanted.can_generate_method_exit_events = 1;
    jvmtiEventCallbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.MethodEntry = entered;
    callbacks.MethodExit = left;
    callbacks.VMDeath = died;
    const jvmtiEvent events[] = { JVMTI_EVENT_METHOD_ENTRY, JVMTI_EVENT_METHOD_EXIT,
                                  JVMTI_EVENT_VM_DEATH };
    jvmtiError error = (*jvmti)->AddCapabilities(jvmti, &wanted);
    if (error == JVMTI_ERROR_NONE) {
        error = (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    }
    for (unsigned i = 0; i < 3 && error == JVMTI_ERROR_NONE; i++) {
        error = (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
    }
    return error == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}
