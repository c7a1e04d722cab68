/* Ways of looking at all threads that Java has not: for bench.DumpWays. */
#include <jvmti.h>
#include <string.h>

static jvmtiEnv *jvmti;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    jvmtiCapabilities wanted;
    if ((*vm)->GetEnv(vm, (void **) &jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        return JNI_ERR;
    }
    memset(&wanted, 0, sizeof wanted);
    wanted.can_tag_objects = 1;
    (*jvmti)->AddCapabilities(jvmti, &wanted);
    return JNI_VERSION_1_8;
}

/* Stacks of all threads in one safepoint, without locks. */
JNIEXPORT void JNICALL Java_bench_DumpWays_allStacks(JNIEnv *env, jclass self, jint depth) {
    jvmtiStackInfo *stacks;
    jint count;
    if ((*jvmti)->GetAllStackTraces(jvmti, depth, &stacks, &count) == JVMTI_ERROR_NONE) {
        (*jvmti)->Deallocate(jvmti, (unsigned char *) stacks);
    }
}

static jint JNICALL abort_walk(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info,
                               jlong class_tag, jlong referrer_class_tag, jlong size,
                               jlong *tag, jlong *referrer_tag, jint length, void *data) {
    return JVMTI_VISIT_ABORT;
}

/* A safepoint with a callback of ours in it, in which nothing is done. */
JNIEXPORT void JNICALL Java_bench_DumpWays_abortedWalk(JNIEnv *env, jclass self) {
    jvmtiHeapCallbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.heap_reference_callback = abort_walk;
    (*jvmti)->FollowReferences(jvmti, 0, NULL, NULL, &callbacks, NULL);
}
