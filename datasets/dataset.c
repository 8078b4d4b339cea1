/* dataset.c - the table of prompts, and making a context of a row by one of them. */
#include "datasets/dataset.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* To the letter, with the blanks and typing errors of the published measurements. */
static const struct dataset table[] = {
    { .name = "narrativeqa",
      .before =
          "You are given a story, which can be either a novel or a movie script, and a question. Answer the question "
          "asconcisely as you can, using a single phrase if possible. Do not provide any explanation.\n\nStory: ",
      .after = "\n\nNow, answer the question based on the story asconcisely as you can, using a single phrase if "
               "possible. Do not provide any explanation.\n\nQuestion: {question}\n\nAnswer:" },
    { .name = "qasper",
      .before = "You are given a scientific article and a question. Answer the question as concisely as you can, using "
                "a single phrase or sentence if possible. If the question cannot be answered based on the information "
                "in the article, write \"unanswerable\". If the question is a yes/no question, answer \"yes\", \"no\", "
                "or \"unanswerable\". Do not provide any explanation.\n\nArticle: ",
      .after = "\n\n Answer the question based on the above article as concisely as you can, using a single phrase or "
               "sentence if possible. If the question cannot be answered based on the information in the article, "
               "write \"unanswerable\". If the question is a yes/no question, answer \"yes\", \"no\", or "
               "\"unanswerable\". Do not provide any explanation.\n\nQuestion: {question}\n\nAnswer:" },
    { .name = "multifieldqa_en",
      .before = "Read the following text and answer briefly.\n\n",
      .after = "\n\nNow, answer the following question based on the above text, only give me the answer and do not "
               "output any other words.\n\nQuestion: {question}\nAnswer:" },
    { .name = "multifieldqa_zh",
      .before = "阅读以下文字并用中文简短回答：\n\n",
      .after =
          "\n\n现在请基于上面的文章回答下面的问题，只告诉我答案，不要输出任何其他字词。\n\n问题：{question}\n回答：" },
    { .name = "hotpotqa",
      .before = "Answer the question based on the given passages. Only give me the answer and do not output any other "
                "words.\n\nThe following are given passages.\n",
      .after = "\n\nAnswer the question based on the given passages. Only give me the answer and do not output any "
               "other words.\n\nQuestion: {question}\nAnswer:" },
    { .name = "2wikimqa",
      .before = "Answer the question based on the given passages. Only give me the answer and do not output any other "
                "words.\n\nThe following are given passages.\n",
      .after = "\n\nAnswer the question based on the given passages. Only give me the answer and do not output any "
               "other words.\n\nQuestion: {question}\nAnswer:" },
    { .name = "musique",
      .before = "Answer the question based on the given passages. Only give me the answer and do not output any other "
                "words.\n\nThe following are given passages.\n",
      .after = "\n\nAnswer the question based on the given passages. Only give me the answer and do not output any "
               "other words.\n\nQuestion: {question}\nAnswer:" },
    { .name = "dureader",
      .before = "请基于给定的文章回答下述问题。\n\n文章：",
      .after = "\n\n请基于上述文章回答下面的问题。\n\n问题：{question}\n回答：" },
    { .name = "gov_report",
      .before = "You are given a report by a government agency. Write a one-page summary of the report.\n\nReport:\n",
      .after = "\n\nNow, write a one-page summary of the report.\n\nSummary:" },
    { .name = "qmsum",
      .before = "You are given a meeting transcript and a query containing a question or instruction. Answer the query "
                "in one or more sentences.\n\nTranscript:\n",
      .after = "\n\nNow, answer the query based on the above meeting transcript in one or more sentences.\n\nQuery: "
               "{question}\nAnswer:" },
    { .name = "multi_news",
      .before = "You are given several news passages. Write a one-page summary of all news. \n\nNews:\n",
      .after = "\n\nNow, write a one-page summary of all the news.\n\nSummary:" },
    { .name = "vcsum",
      .before = "下面有一段会议记录，请你阅读后，写一段总结，总结会议的内容。\n会议记录：\n",
      .after = "\n\n会议总结：" },
    { .name = "trec",
      .before = "Please determine the type of the question below. Here are some examples of questions.\n\n",
      .after = "\n{question}" },
    { .name = "triviaqa",
      .before = "Answer the question based on the given passage. Only give me the answer and do not output any other "
                "words. The following are some examples.\n\n",
      .after = "\n\n{question}" },
    { .name = "samsum",
      .before = "Summarize the dialogue into a few short sentences. The following are some examples.\n\n",
      .after = "\n\n{question}" },
    { .name = "lsht", .before = "请判断给定新闻的类别，下面是一些例子。\n\n", .after = "\n{question}" },
    { .name = "passage_count",
      .before = "There are some paragraphs below sourced from Wikipedia. Some of them may be duplicates. Please "
                "carefully read these paragraphs and determine how many unique paragraphs there are after removing "
                "duplicates. In other words, how many non-repeating paragraphs are there in total?\n\n",
      .after = "\n\nPlease enter the final count of unique paragraphs after removing duplicates. The output format "
               "should only contain the number, such as 1, 2, 3, and so on.\n\nThe final answer is: " },
    { .name = "passage_retrieval_en",
      .before = "Here are 30 paragraphs from Wikipedia, along with an abstract. Please determine which paragraph the "
                "abstract is from.\n\n",
      .after = "\n\nThe following is an abstract.\n\n{question}\n\nPlease enter the number of the paragraph that the "
               "abstract is from. The answer format must be like \"Paragraph 1\", \"Paragraph 2\", etc.\n\nThe answer "
               "is: " },
    { .name = "passage_retrieval_zh",
      .before = "以下是若干段落文字，以及其中一个段落的摘要。请确定给定的摘要出自哪一段。\n\n",
      .after = "\n\n下面是一个摘要\n\n{question}"
               "\n\n请输入摘要所属段落的编号。答案格式必须是\"段落1\"，\"段落2\"等格式\n\n答案是：" },
    { .name = "lcc", .before = "Please complete the code given below. \n", .after = "Next line of code:\n" },
    { .name = "repobench-p",
      .before = "Please complete the code given below. \n",
      .after = "{question}Next line of code:\n" },
    { .name = "longbench-v2",
      .before = "Please read the following text and answer the question below.\n\n<text>\n",
      .after =
          "\n</text>\n\nWhat is the correct answer to this question: {question}\n\nFormat your response as follows: "
          "\"The correct answer is (insert answer here)\"." },
    { .name = "scbench_kv",
      .before = "Extract the value corresponding to the specified key in the JSON object below.\n\n",
      .after = SCBENCH_ASK },
    { .name = "scbench_choice_eng",
      .before = "Read the book and answer the question.\n\n",
      .after = "\n\nQuestion: {question}\n\nThe the correct answer is" },
    { .name = "scbench_qa_eng",
      .before = "Read the book and answer the question. Be very concise in your answer.\n\n",
      .after = "\n\nQuestion: {question}\nAnswer:" },
    { .name = "scbench_qa_chn", .before = "阅读以下书籍然后回答问题。\n\n", .after = "\n\n问题：{question}\n答案：" },
    { .name = "scbench_repoqa",
      .before = "Based on the function description and code context, please retrieve and repeat the exact described "
                "function from the code context in a code block wrapped by ```:\n\n",
      .after = SCBENCH_ASK },
};
enum { N_DATASETS = sizeof(table) / sizeof(*table) };

const struct dataset *dataset_find(const char *name)
{
    size_t n = strlen(name);

    if (n > 2 && strcmp(name + n - 2, "_e") == 0)
        n -= 2;
    for (int i = 0; i < N_DATASETS; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0)
            return &table[i];
    return NULL;
}

/* An instruction as a question: without the white space around it. The caller frees it. */
static char *trimmed(const char *s)
{
    s += strspn(s, " \n");
    size_t n = strlen(s);
    while (n && strchr(" \n", s[n - 1]))
        n--;
    return strndup(s, n);
}

/* Adds the row's own question, or the published instruction if the prompt has no {input}. */
static int add_question(const struct dataset_row *row, const char *instruction, struct context *c, struct err *err)
{
    if (!instruction)
        return row->input && *row->input ? context_add_input(c, row->input, row->answers, err) : 0;
    char *question = trimmed(instruction);
    if (!question)
        return err_nomem(err);
    int code = context_add_input(c, question, row->answers, err);
    free(question);
    return code;
}

int dataset_prompt(const struct dataset *d, const struct dataset_row *row, struct context *c, struct err *err)
{
    d = row->ask ? NULL : d;
    bool takes_questions = !d || strstr(d->after, "{question}");
    const char *ask = row->ask ? row->ask : !d ? CONTEXT_PLAIN_ASK : takes_questions ? d->after : DATASET_ASK;
    struct buf text = { 0 };

    if (!*row->document)
        return err_set(err, ERR_FORMAT, "the document is empty");
    buf_adds(&text, d ? d->before : "");
    buf_adds(&text, row->document);
    c->text = buf_take(&text);
    c->ask = strdup(ask);
    if (!c->text || !c->ask)
        return err_nomem(err);
    c->chars = (int64_t)utf8_count(c->text, strlen(c->text));
    c->n_tokens = -1;
    return add_question(row, takes_questions ? NULL : d->after, c, err);
}
