/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels for the stand-in driver: it reads a text in PTX, of which it knows the few instructions
 * that our kernels have, and does what they say, one thread after another. An instruction that it
 * does not know ends the process with words; so what runs here is the text that a device gets.
 *
 * A register is 64 bits, whatever its declared type; an instruction takes as many as its own type
 * says, as PTX defines it for registers of bits.
 */
#include <ctype.h>
#include <math.h>

enum { PTX_REGISTERS = 128, PTX_STEPS = 512, PTX_PARAMETERS = 32, PTX_LABELS = 16, PTX_WORD = 48 };

/* An operand: a register, a value, a parameter or a special register. */
struct ptx_operand {
    enum { NOTHING, REGISTER, VALUE, PARAMETER, SPECIAL } is;
    int which;
    uint64_t value;
};

struct ptx_step {
    char opcode[PTX_WORD];
    int code;  /* its position in the list of those that are known */
    int guard; /* the register that says whether it is done; -1: always */
    int target;
    struct ptx_operand operand[4];
};

struct ptx {
    char name[PTX_WORD];
    char registers[PTX_REGISTERS][PTX_WORD], parameters[PTX_PARAMETERS][PTX_WORD];
    int register_count, parameter_count, step_count;
    struct ptx_step steps[PTX_STEPS];
};

/* Where a kernel reaches memory; NULL ends it as a device ends it, with an illegal address. */
typedef char *ptx_memory(uint64_t address, size_t len);

struct ptx_launch {
    const struct ptx *ptx;
    uint64_t arguments[PTX_PARAMETERS];
    unsigned blocks, threads;
};

static void ptx_die(const char *why, const char *what)
{
    fprintf(stderr, "stand-in driver: PTX: %s: %s\n", why, what);
    abort();
}

static int ptx_find(char names[][PTX_WORD], int *count, int most, const char *name, int add)
{
    for (int at = 0; at < *count; at++)
        if (strcmp(names[at], name) == 0)
            return at;
    if (!add)
        return -1;
    if (*count == most || strlen(name) >= PTX_WORD)
        ptx_die("too many names, or too long a one", name);
    strcpy(names[*count], name);
    return (*count)++;
}

static const char *const ptx_special[] = {"%ctaid.x", "%ntid.x", "%tid.x", "%nctaid.x"};

static struct ptx_operand ptx_operand(struct ptx *ptx, char *word)
{
    struct ptx_operand operand = {VALUE, 0, 0};
    char *end;

    if (*word == '[') {
        word++;
        word[strcspn(word, "]")] = 0;
    }
    for (int at = 0; at < 4; at++)
        if (strcmp(word, ptx_special[at]) == 0)
            return (struct ptx_operand){SPECIAL, at, 0};
    if (*word == '%') {
        operand.is = REGISTER;
        operand.which = ptx_find(ptx->registers, &ptx->register_count, PTX_REGISTERS, word, 1);
    } else if (isdigit((unsigned char)*word)) {
        operand.value = strtoull(word, &end, 0);
        if (*end)
            ptx_die("no number", word);
    } else {
        operand.is = PARAMETER;
        operand.which = ptx_find(ptx->parameters, &ptx->parameter_count, 0, word, 0);
    }
    return operand;
}

static uint64_t ptx_bits(uint64_t value, int bits)
{
    return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static int64_t ptx_signed(uint64_t value, int bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static float ptx_float(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static uint64_t ptx_float_bits(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static double ptx_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t ptx_double_bits(double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}

static uint64_t ptx_from_half(uint64_t bits)
{
    uint16_t word = (uint16_t)bits;
    _Float16 half;
    memcpy(&half, &word, sizeof half);
    return ptx_float_bits((float)half);
}

static uint64_t ptx_to_half(uint64_t bits)
{
    _Float16 half = (_Float16)ptx_float(bits);
    uint16_t word;
    memcpy(&word, &half, sizeof word);
    return word;
}

enum ptx_code {
    LD_PARAM, LD, LD_SIGNED, ST, MOV, ADD, ADD_FLOAT, MUL, MUL_WIDE, MUL_FLOAT, MAX_OF, MAX_SIGNED, MIN_OF, MIN_SIGNED,
    AND, OR, XOR, SHL, SHR, SET_GE, SET_NE, SET_GT_FLOAT, SET_LT_FLOAT, SET_NAN, SELECT, FROM_HALF, TO_HALF, BRANCH, RETURN
};

/* The instructions that are known, with the bits that each works on. */
static const struct {
    const char *opcode;
    enum ptx_code code;
    int bits;
} ptx_known[] = {
    {"ld.param.u64", LD_PARAM, 64},
    {"ld.global.u8", LD, 8},          {"ld.global.s8", LD_SIGNED, 8},   {"ld.global.b16", LD, 16},
    {"ld.global.u16", LD, 16},        {"ld.global.s16", LD_SIGNED, 16}, {"ld.global.b32", LD, 32},
    {"ld.global.b64", LD, 64},        {"st.global.u8", ST, 8},          {"st.global.b16", ST, 16},
    {"st.global.u16", ST, 16},        {"st.global.u32", ST, 32},        {"st.global.b32", ST, 32},
    {"st.global.u64", ST, 64},        {"st.global.b64", ST, 64},        {"mov.u32", MOV, 32},
    {"add.u32", ADD, 32},             {"add.u64", ADD, 64},             {"add.s32", ADD, 32},
    {"add.s64", ADD, 64},             {"add.rn.f32", ADD_FLOAT, 32},    {"add.rn.f64", ADD_FLOAT, 64},
    {"mul.lo.u32", MUL, 32},          {"mul.lo.u64", MUL, 64},          {"mul.lo.s32", MUL, 32},
    {"mul.lo.s64", MUL, 64},          {"mul.wide.u32", MUL_WIDE, 32},   {"mul.rn.f32", MUL_FLOAT, 32},
    {"mul.rn.f64", MUL_FLOAT, 64},    {"max.u32", MAX_OF, 32},          {"max.u64", MAX_OF, 64},
    {"max.s32", MAX_SIGNED, 32},      {"max.s64", MAX_SIGNED, 64},      {"min.u32", MIN_OF, 32},
    {"min.u64", MIN_OF, 64},          {"min.s32", MIN_SIGNED, 32},      {"min.s64", MIN_SIGNED, 64},
    {"and.b32", AND, 32},             {"and.b64", AND, 64},             {"or.b32", OR, 32},
    {"or.b64", OR, 64},               {"xor.b32", XOR, 32},             {"xor.b64", XOR, 64},
    {"shl.b32", SHL, 32},             {"shr.u32", SHR, 32},             {"setp.ge.u64", SET_GE, 64},
    {"setp.ne.u32", SET_NE, 32},      {"setp.ne.s32", SET_NE, 32},      {"setp.ne.u64", SET_NE, 64},
    {"setp.ne.s64", SET_NE, 64},      {"setp.gt.f32", SET_GT_FLOAT, 32}, {"setp.gt.f64", SET_GT_FLOAT, 64},
    {"setp.lt.f32", SET_LT_FLOAT, 32}, {"setp.lt.f64", SET_LT_FLOAT, 64}, {"setp.nan.f32", SET_NAN, 32},
    {"setp.nan.f64", SET_NAN, 64},    {"selp.b16", SELECT, 16},         {"selp.b32", SELECT, 32},
    {"selp.b64", SELECT, 64},         {"cvt.f32.f16", FROM_HALF, 32},   {"cvt.rn.f16.f32", TO_HALF, 16},
    {"bra", BRANCH, 0},               {"ret", RETURN, 0},
};

/* One step of a kernel: `[@%guard] opcode operand, operand, ...`. */
static void ptx_read_step(struct ptx *ptx, char *text, char labels[][PTX_WORD], int *label_count)
{
    struct ptx_step *step = &ptx->steps[ptx->step_count];
    char *rest, *word = strtok_r(text, " \t\n", &rest);
    int known = 0, operands = 0;

    if (ptx->step_count++ == PTX_STEPS)
        ptx_die("too long", ptx->name);
    step->guard = -1;
    if (*word == '@') {
        step->guard = ptx_find(ptx->registers, &ptx->register_count, PTX_REGISTERS, word + 1, 1);
        word = strtok_r(NULL, " \t\n", &rest);
    }
    while (known < (int)(sizeof ptx_known / sizeof ptx_known[0]) && strcmp(ptx_known[known].opcode, word) != 0)
        known++;
    if (known == (int)(sizeof ptx_known / sizeof ptx_known[0]))
        ptx_die("an instruction that is not known", word);
    step->code = known;
    for (word = strtok_r(NULL, ", \t\n", &rest); word; word = strtok_r(NULL, ", \t\n", &rest)) {
        if (operands == 4)
            ptx_die("too many operands", ptx_known[known].opcode);
        if (ptx_known[known].code == BRANCH)
            step->target = ptx_find(labels, label_count, PTX_LABELS, word, 1);
        else
            step->operand[operands++] = ptx_operand(ptx, word);
    }
}

/* Reads the one kernel of a text. */
static struct ptx *ptx_read(const char *image)
{
    struct ptx *ptx = calloc(1, sizeof *ptx);
    char *text = strdup(image), *at = strstr(text, ".entry"), *body = at ? strchr(at, '{') : NULL, *rest;
    char labels[PTX_LABELS][PTX_WORD];
    int places[PTX_LABELS], label_count = 0;

    if (body == NULL || sscanf(at, ".entry %47[A-Za-z0-9_]", ptx->name) != 1)
        ptx_die("no kernel", image);
    *body = 0;
    for (char *next = strstr(at, ".param .u64 "); next; next = strstr(next + 1, ".param .u64 ")) {
        char name[PTX_WORD];
        sscanf(next, ".param .u64 %47[A-Za-z0-9_]", name);
        ptx_find(ptx->parameters, &ptx->parameter_count, PTX_PARAMETERS, name, 1);
    }
    memset(places, -1, sizeof places);
    for (char *word = strtok_r(body + 1, ";}", &rest); word; word = strtok_r(NULL, ";}", &rest)) {
        char *colon;
        word += strspn(word, " \t\n");
        while ((colon = strchr(word, ':')) != NULL) {
            *colon = 0;
            places[ptx_find(labels, &label_count, PTX_LABELS, word, 1)] = ptx->step_count;
            word = colon + 1 + strspn(colon + 1, " \t\n");
        }
        if (*word && strncmp(word, ".reg", 4) != 0)
            ptx_read_step(ptx, word, labels, &label_count);
    }
    for (int step = 0; step < ptx->step_count; step++)
        if (ptx_known[ptx->steps[step].code].code == BRANCH &&
            (ptx->steps[step].target = places[ptx->steps[step].target]) < 0)
            ptx_die("a label that is not there", ptx->name);
    free(text);
    return ptx;
}

static uint64_t ptx_value(const struct ptx_launch *launch, const uint64_t *registers, struct ptx_operand operand,
                          const unsigned *special)
{
    switch (operand.is) {
    case REGISTER:
        return registers[operand.which];
    case PARAMETER:
        return launch->arguments[operand.which];
    case SPECIAL:
        return special[operand.which];
    default:
        return operand.value;
    }
}

static uint64_t ptx_compute(enum ptx_code code, int bits, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = ptx_bits(a, bits ? bits : 64), y = ptx_bits(b, bits ? bits : 64);
    int single = bits == 32;

    switch (code) {
    case ADD:
        return ptx_bits(x + y, bits);
    case MUL:
        return ptx_bits(x * y, bits);
    case MUL_WIDE:
        return x * y;
    case ADD_FLOAT:
        return single ? ptx_float_bits(ptx_float(x) + ptx_float(y)) : ptx_double_bits(ptx_double(x) + ptx_double(y));
    case MUL_FLOAT:
        return single ? ptx_float_bits(ptx_float(x) * ptx_float(y)) : ptx_double_bits(ptx_double(x) * ptx_double(y));
    case MAX_OF:
        return x > y ? x : y;
    case MIN_OF:
        return x < y ? x : y;
    case MAX_SIGNED:
        return ptx_signed(x, bits) > ptx_signed(y, bits) ? x : y;
    case MIN_SIGNED:
        return ptx_signed(x, bits) < ptx_signed(y, bits) ? x : y;
    case AND:
        return x & y;
    case OR:
        return x | y;
    case XOR:
        return x ^ y;
    case SHL:
        return ptx_bits(x << y, bits);
    case SHR:
        return x >> y;
    case SET_GE:
        return x >= y;
    case SET_NE:
        return x != y;
    case SET_GT_FLOAT:
        return single ? ptx_float(x) > ptx_float(y) : ptx_double(x) > ptx_double(y);
    case SET_LT_FLOAT:
        return single ? ptx_float(x) < ptx_float(y) : ptx_double(x) < ptx_double(y);
    case SET_NAN:
        return single ? isunordered(ptx_float(x), ptx_float(y)) : isunordered(ptx_double(x), ptx_double(y));
    case SELECT:
        return c ? x : y;
    case FROM_HALF:
        return ptx_from_half(a);
    case TO_HALF:
        return ptx_to_half(a);
    default: /* MOV */
        return x;
    }
}

/* One thread of a kernel, to its end. Returns 0, or -1 where it touches what is not there, or not
 * at a multiple of its length. */
static int ptx_thread(const struct ptx_launch *launch, ptx_memory *memory, const unsigned *special)
{
    const struct ptx *ptx = launch->ptx;
    uint64_t registers[PTX_REGISTERS];

    memset(registers, 0xd1, sizeof registers); /* who reads what nobody has set gets no zero */
    for (int at = 0; at < ptx->step_count; at++) {
        const struct ptx_step *step = &ptx->steps[at];
        enum ptx_code code = ptx_known[step->code].code;
        int bits = ptx_known[step->code].bits;
        uint64_t operand[4];
        char *place;

        if (step->guard >= 0 && !registers[step->guard])
            continue;
        if (code == RETURN)
            return 0;
        if (code == BRANCH) {
            at = step->target - 1;
            continue;
        }
        for (int which = code == ST ? 0 : 1; which < 4; which++)
            operand[which] = ptx_value(launch, registers, step->operand[which], special);
        switch (code) {
        case LD_PARAM:
            registers[step->operand[0].which] = operand[1];
            break;
        case LD:
        case LD_SIGNED:
            if (operand[1] % (unsigned)(bits / 8) != 0 || (place = memory(operand[1], (size_t)bits / 8)) == NULL)
                return -1;
            registers[step->operand[0].which] = 0;
            memcpy(&registers[step->operand[0].which], place, (size_t)bits / 8);
            if (code == LD_SIGNED)
                registers[step->operand[0].which] = (uint64_t)ptx_signed(registers[step->operand[0].which], bits);
            break;
        case ST:
            if (operand[0] % (unsigned)(bits / 8) != 0 || (place = memory(operand[0], (size_t)bits / 8)) == NULL)
                return -1;
            memcpy(place, &operand[1], (size_t)bits / 8);
            break;
        default:
            registers[step->operand[0].which] = ptx_compute(code, bits, operand[1], operand[2], operand[3]);
        }
    }
    return 0;
}

static int ptx_run(const struct ptx_launch *launch, ptx_memory *memory)
{
    for (unsigned block = 0; block < launch->blocks; block++)
        for (unsigned thread = 0; thread < launch->threads; thread++)
            if (ptx_thread(launch, memory, (unsigned[]){block, launch->threads, thread, launch->blocks}) != 0)
                return -1;
    return 0;
}
