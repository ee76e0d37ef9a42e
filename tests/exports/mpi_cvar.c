/* Prints NAME=VALUE for every integer control variable of this MPI whose name is an argument. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void show(int index, const char *wanted)
{
    char name[256], description[4096];
    int name_length = sizeof name, description_length = sizeof description;
    int verbosity, binding, scope, count, value = 0;
    MPI_Datatype type;
    MPI_T_enum members;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &type, &members, description,
                        &description_length, &binding, &scope);
    if (strcmp(name, wanted) != 0 || type != MPI_INT) return;
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    if (count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) printf("%s=%d\n", name, value);
    MPI_T_cvar_handle_free(&handle);
}

int main(int argc, char **argv)
{
    int provided, variables;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_T_cvar_get_num(&variables);
    for (int i = 1; i < argc; i++)
        for (int index = 0; index < variables; index++) show(index, argv[i]);
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
